#include "rendezvous/waiting_report.hpp"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

constexpr Time kStart{std::chrono::hours(1)};

Config job(int min_nodes, int max_nodes) {
  Config config;
  config.min_nodes = min_nodes;
  config.max_nodes = max_nodes;
  config.join_timeout = Milliseconds(600'000);
  return config;
}

class ReportMachine {
 public:
  const Config config = job(2, 4);
  Outbox outbox;
  WaitingReport report{config, outbox, kStart};
  std::string trouble;
  RoundDocument round;
  WaitingReport::View view{};
  Time now = kStart;

  ReportMachine() {
    view.up = true;
    view.trouble = &trouble;
    view.round = &round;
    round.nodes = 2;
  }
  void wait() {
    view.waiting_since = now;
    view.spare = false;
  }
  void run(bool spare) {
    view.waiting_since.reset();
    view.spare = spare;
  }
  void lose_link(const std::string& why) {
    view.up = why.empty();
    trouble = why;
  }
  void pass(int ms) { now += Milliseconds(ms); }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Nothing", "Waiting", "Spare", "Withdrawn"};
    return kNames[static_cast<int>(report.state(view))];
  }
  std::string news() {
    const std::string before = state();
    report.look(view, now);
    std::string did = before == state() ? "" : ", then " + state();
    for (const auto& action : outbox.take())
      if (const auto* line = std::get_if<ProgressAction>(&action))
        did += (line->spare ? ", as a spare '" : ", '") + line->text + "'";
    return news_(before, did);
  }

 private:
  test::News news_;
};

const test::TableEvents<ReportMachine> kEvents = {
    {"no round runs", [](ReportMachine& m) { m.wait(); }},
    {"it takes part", [](ReportMachine& m) { m.run(false); }},
    {"it has no part", [](ReportMachine& m) { m.run(true); }},
    {"nothing", [](ReportMachine&) {}},
    {"almost a second", [](ReportMachine& m) { m.pass(999); }},
    {"a second", [](ReportMachine& m) { m.pass(1'000); }},
    {"a second without the store",
     [](ReportMachine& m) {
       m.lose_link("reset");
       m.pass(1'000);
     }},
    {"the leader says who is missing, a second",
     [](ReportMachine& m) {
       m.round.waiting = "3 of 4 nodes";
       m.pass(1'000);
     }},
    {"the job is full, a second",
     [](ReportMachine& m) {
       m.round.nodes = 4;
       m.pass(1'000);
     }},
    {"it leaves", [](ReportMachine& m) { m.view.ending = true; }}};

const std::vector<test::StateRow> kTable = {{"Nothing", {}, R"(
  no round runs -> Waiting
  it has no part -> Spare
  it takes part; nothing; almost a second; a second; a second without the store; the leader says
      who is missing, a second; the job is full, a second; it leaves -> nothing
)"},
                                            {"Waiting", {"no round runs"}, R"(
  it takes part; it leaves -> Nothing
  it has no part -> Spare
  a second; the job is full, a second -> Waiting, 'waiting 00:01 (09:59 left): the store is
      there; which of 2 to 4 nodes are, no other agent has said yet'
  a second without the store -> Waiting, 'waiting 00:01: for the store to come back: reset'
  the leader says who is missing, a second -> Waiting, 'waiting 00:01 (09:59 left): 3 of 4
      nodes'
  no round runs; nothing; almost a second -> nothing
)"},
                                            {"Waiting, shown", {"no round runs", "a second"}, R"(
  it takes part; it leaves -> Withdrawn, then Nothing, ''
  it has no part -> Spare
  a second; the job is full, a second -> Waiting, 'waiting 00:02 (09:58 left): the store is
      there; which of 2 to 4 nodes are, no other agent has said yet'
  a second without the store -> Waiting, 'waiting 00:02: for the store to come back: reset'
  the leader says who is missing, a second -> Waiting, 'waiting 00:02 (09:58 left): 3 of 4
      nodes'
  no round runs; nothing; almost a second -> nothing
)"},
                                            {"Spare", {"it has no part"}, R"(
  no round runs -> Waiting
  it takes part; it leaves -> Nothing
  a second; a second without the store; the leader says who is missing, a second -> Spare, as a
      spare 'spare: the job runs with 2 of 2 to 4 nodes, this one is about to join'
  the job is full, a second -> Spare, as a spare 'spare: the job runs with 4 of 2 to 4 nodes,
      this one waits to be needed'
  it has no part; nothing; almost a second -> nothing
)"},
                                            {"Spare, shown", {"it has no part", "a second"}, R"(
  no round runs -> Waiting
  it takes part; it leaves -> Withdrawn, then Nothing, ''
  the job is full, a second -> Spare, as a spare 'spare: the job runs with 4 of 2 to 4 nodes,
      this one waits to be needed'
  it has no part; nothing; almost a second; a second; a second without the store; the leader
      says who is missing, a second -> nothing
)"}};

TEST(WaitingReportTest, DoesInEveryStateWhatTheTableSays) {
  // Withdrawn lasts until the next look: the tables show it as what comes before "then Nothing".
  test::expect_table(kEvents, kTable, {"Nothing", "Waiting", "Spare"});
}

TEST(WaitingReportTest, IsDueOnlyWhileThereIsSomethingToWaitFor) {
  ReportMachine m;
  EXPECT_FALSE(m.report.next_deadline(m.view));
  m.wait();
  (void)m.news();
  EXPECT_EQ(m.report.next_deadline(m.view), kStart + WaitingReport::kPeriod);
  m.view.ending = true;
  EXPECT_FALSE(m.report.next_deadline(m.view));
}

// What a spare line says of the future.
TEST(WaitingReportTest, ASpareSaysWhatItWaitsFor) {
  struct Case {
    int nodes;
    int step;
    Resize resize;
    const char* until;
  };
  for (const auto& [nodes, step, resize, until] :
       {Case{4, 1, Resize::Now, ", this one waits to be needed"},
        Case{2, 2, Resize::Now, ", in steps of 2, this one waits until a whole step is there"},
        Case{2, 1, Resize::Now, ", this one is about to join"},
        Case{2, 1, Resize::Restart, ", this one joins at the next restart"}}) {
    Config config = job(2, 4);
    config.node_step = step;
    config.resize = resize;
    Outbox outbox;
    WaitingReport report(config, outbox, kStart);
    RoundDocument round;
    round.nodes = nodes;
    const std::string trouble;
    WaitingReport::View view;
    view.up = true;
    view.trouble = &trouble;
    view.round = &round;
    view.spare = true;
    report.look(view, kStart + WaitingReport::kPeriod);
    const auto actions = outbox.take();
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_EQ(std::get<ProgressAction>(actions[0]).text,
              "spare: the job runs with " + std::to_string(nodes) + " of 2 to 4 nodes" + until);
  }
}

// The other may be a dead agent whose session lives on for a moment: that is no spare's line.
TEST(WaitingReportTest, ASecondAgentOfAJobOfOneNodeIsNoSpare) {
  const Config config = job(1, 1);
  Outbox outbox;
  WaitingReport report(config, outbox, kStart);
  const RoundDocument round;
  WaitingReport::View view;
  view.round = &round;
  view.spare = true;
  report.look(view, kStart + WaitingReport::kPeriod);
  report.look(view, kStart + 3 * WaitingReport::kPeriod);
  const auto actions = outbox.take();
  ASSERT_EQ(actions.size(), 1U) << "the same line is not repeated";
  const auto& line = std::get<ProgressAction>(actions[0]);
  EXPECT_FALSE(line.spare);
  EXPECT_TRUE(line.text.starts_with("not started yet: ")) << line.text;
}

}  // namespace
}  // namespace drun::rendezvous
