#include "rendezvous/decision_writer.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::rendezvous {
namespace {

class WriterMachine {
 public:
  Outbox outbox;
  DecisionWriter writer{outbox, {"leader", "me"}};

  void write(std::size_t writes) {
    if (!writer.idle()) return;
    Decision decision;
    decision.root = "a" + std::to_string(writes);
    for (std::size_t i = 0; i < writes; ++i)
      decision.writes.push_back({std::to_string(i), "", false});
    writer.write(std::move(decision), 2);
    take();
  }
  // Of whatever was sent last.
  void taken() {
    if (!writer.is(last_)) return;
    if (const auto done = writer.on_taken())
      did_ +=
          ", " + done->root + " is written, " + (done->writes.empty() ? "nothing" : "something");
    take();
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Idle", "Sent", "PartlyTaken"};
    return kNames[static_cast<int>(writer.state())];
  }
  std::string news() {
    return news_(state() + (writer.decision() ? " " + writer.decision()->root : ""),
                 std::exchange(did_, ""));
  }

 private:
  void take() {
    for (const auto& action : outbox.take()) {
      const auto& sent = std::get<CommitAction>(action);
      last_ = sent.request;
      did_ += sent.transaction.guards.size() == 1 && sent.transaction.guards[0].key == "leader" &&
                      sent.transaction.guards[0].expected == "me"
                  ? ", if it leads"
                  : ", whoever leads";
      for (const Write& write : sent.transaction.writes)
        did_ += " " + write.key;
    }
  }

  RequestId last_ = 99;
  std::string did_;
  test::News news_;
};

const test::TableEvents<WriterMachine> kEvents = {
    {"two writes", [](WriterMachine& m) { m.write(2); }},
    {"five writes", [](WriterMachine& m) { m.write(5); }},
    {"taken", [](WriterMachine& m) { m.taken(); }},
    {"drop", [](WriterMachine& m) { m.writer.drop(); }}};

const std::vector<test::StateRow> kTable = {
    {"Idle", {}, R"(
  two writes -> Sent a2, if it leads 0 1
  five writes -> Sent a5, if it leads 0 1
  taken; drop -> nothing
)"},
    {"Sent, all of it", {"two writes"}, R"(
  taken -> Idle, a2 is written, something
  drop -> Idle
  two writes; five writes -> nothing
)"},
    {"Sent, the first part", {"five writes"}, R"(
  taken -> PartlyTaken a5, if it leads 2 3
  drop -> Idle
  two writes; five writes -> nothing
)"},
    {"PartlyTaken", {"five writes", "taken"}, R"(
  taken -> PartlyTaken a5, if it leads 4
  drop -> Idle
  two writes; five writes -> nothing
)"},
    {"PartlyTaken, but for the last", {"five writes", "taken", "taken"}, R"(
  taken -> Idle, a5 is written, something
  drop -> Idle
  two writes; five writes -> nothing
)"},
    {"Idle, after a part was taken", {"five writes", "taken", "drop"}, R"(
  two writes -> Sent a2, if it leads 0 1
  five writes -> Sent a5, if it leads 0 1
  taken; drop -> nothing
)"}};

TEST(DecisionWriterTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Idle", "Sent", "PartlyTaken"});
}

}  // namespace
}  // namespace drun::rendezvous
