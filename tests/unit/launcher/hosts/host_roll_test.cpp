// When the job of several hosts begins, when it ends, and with which exit code.
#include "launcher/hosts/host_roll.hpp"

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/state_table.hpp"

namespace drun::launcher::hosts {
namespace {

using Step = HostRoll::Step;

// Three hosts, of which two make a job.
class RollMachine {
 public:
  HostRoll roll{3, 2};

  void take(Step step) {
    constexpr const char* kSteps[] = {"",      "begin",   "join",       "give up",
                                      "hurry", "outlast", "stop others"};
    if (step != Step::None) did_ += std::string(", ") + kSteps[static_cast<int>(step)];
  }
  // As the starter does.
  void retry(std::size_t host) {
    if (!roll.may_return(host)) return;
    roll.on_retry(host);
    did_ += ", is tried again";
  }
  [[nodiscard]] std::string state() const {
    constexpr const char* kNames[] = {"Gathering", "Begun", "TooFew", "GivenUp"};
    return kNames[static_cast<int>(roll.state())];
  }
  std::string news() {
    std::string is = state();
    for (std::size_t host = 0; host < 3; ++host)
      if (roll.is_gone(host)) is += std::string(" -") + static_cast<char>('a' + host);
    if (roll.over()) is += ", over";
    return news_(is + " " + std::to_string(roll.exit_code()), std::exchange(did_, ""));
  }

 private:
  std::string did_;
  test::News news_;
};

const test::TableEvents<RollMachine> kEvents = {
    {"a ready", [](RollMachine& m) { m.take(m.roll.on_ready(0)); }},
    {"b ready", [](RollMachine& m) { m.take(m.roll.on_ready(1)); }},
    {"c ready", [](RollMachine& m) { m.take(m.roll.on_ready(2)); }},
    {"a failed", [](RollMachine& m) { m.take(m.roll.on_failed(0)); }},
    {"b failed", [](RollMachine& m) { m.take(m.roll.on_failed(1)); }},
    {"c failed", [](RollMachine& m) { m.take(m.roll.on_failed(2)); }},
    {"a ended with 0", [](RollMachine& m) { m.take(m.roll.on_ended(0, 0)); }},
    {"a ended with 7", [](RollMachine& m) { m.take(m.roll.on_ended(0, 7)); }},
    {"a ended with 143", [](RollMachine& m) { m.take(m.roll.on_ended(0, 143)); }},
    {"b ended with 0", [](RollMachine& m) { m.take(m.roll.on_ended(1, 0)); }},
    {"c ended with 0", [](RollMachine& m) { m.take(m.roll.on_ended(2, 0)); }},
    {"c once more", [](RollMachine& m) { m.retry(2); }},
    {"SIGINT", [](RollMachine& m) { m.take(m.roll.on_stop(SIGINT)); }}};

const test::Way kAll = {"a ready", "b ready", "c ready"};

test::Way all_and(const test::Way& more) {
  test::Way way = kAll;
  way.insert(way.end(), more.begin(), more.end());
  return way;
}

const std::vector<test::StateRow> kTable = {
    {"Gathering", {}, R"(
  a failed -> Gathering -a 125
  b failed -> Gathering -b 125
  c failed -> Gathering -c 125
  a ended with 0 -> Gathering -a 0
  a ended with 7 -> Gathering -a 7
  a ended with 143 -> Gathering -a 143
  b ended with 0 -> Gathering -b 0
  c ended with 0 -> Gathering -c 0
  SIGINT -> GivenUp, over 130, give up
  a ready; b ready; c ready; c once more -> nothing
)"},
    {"Gathering, c is awaited", {"a ready", "b ready"}, R"(
  c ready -> Begun 125, begin
  a failed -> Gathering -a 125
  b failed -> Gathering -b 125
  c failed -> Begun -c 125, begin
  a ended with 0 -> Gathering -a 0
  a ended with 7 -> Gathering -a 7
  a ended with 143 -> Gathering -a 143
  b ended with 0 -> Gathering -b 0
  c ended with 0 -> Gathering -c 0
  SIGINT -> GivenUp, over 130, give up
  a ready; b ready; c once more -> nothing
)"},
    {"Gathering, c is awaited, and a has failed", {"b ready", "a failed"}, R"(
  c ready -> Begun -a 125, begin
  b failed -> Gathering -a -b 125
  c failed -> GivenUp -a -c, over 125, give up
  b ended with 0 -> Gathering -a -b 0
  c ended with 0 -> Gathering -a -c 0
  SIGINT -> GivenUp -a, over 130, give up
  a ready; b ready; a failed; a ended with 0; a ended with 7; a ended with 143; c once more ->
      nothing
)"},
    {"Begun", kAll, R"(
  a failed -> Begun -a 125
  b failed -> Begun -b 125
  c failed -> Begun -c 125
  a ended with 0 -> Begun -a 0
  a ended with 7 -> Begun -a 7
  a ended with 143 -> Begun -a 143
  b ended with 0 -> Begun -b 0
  c ended with 0 -> Begun -c 0
  SIGINT -> Begun 130
  a ready; b ready; c ready; c once more -> nothing
)"},
    {"Begun, without c", {"a ready", "b ready", "c failed"}, R"(
  a failed -> TooFew -a -c 125, stop others
  b failed -> TooFew -b -c 125, stop others
  a ended with 0 -> Begun -a -c 0
  a ended with 7 -> Begun -a -c 7, hurry
  a ended with 143 -> Begun -a -c 143, hurry
  b ended with 0 -> Begun -b -c 0
  c once more -> Begun 125, is tried again
  SIGINT -> Begun -c 130
  a ready; b ready; c ready; c failed; c ended with 0 -> nothing
)"},
    {"Begun, and c is tried again", {"a ready", "b ready", "c failed", "c once more"}, R"(
  c ready -> Begun 125, join
  a failed -> TooFew -a 125, stop others
  b failed -> TooFew -b 125, stop others
  c failed -> Begun -c 125
  a ended with 0 -> Begun -a 0
  a ended with 7 -> Begun -a 7, hurry
  a ended with 143 -> Begun -a 143, hurry
  b ended with 0 -> Begun -b 0
  c ended with 0 -> Begun -c 0
  SIGINT -> Begun 130
  a ready; b ready; c once more -> nothing
)"},
    {"Begun, and a node has succeeded", all_and({"b ended with 0"}), R"(
  a failed -> Begun -a -b 0
  c failed -> Begun -b -c 0
  a ended with 0 -> Begun -a -b 0, outlast
  a ended with 7 -> Begun -a -b 7, hurry
  a ended with 143 -> Begun -a -b 143, hurry
  c ended with 0 -> Begun -b -c 0, outlast
  a ready; b ready; c ready; b failed; b ended with 0; c once more; SIGINT -> nothing
)"},
    {"Begun, and the job has failed", all_and({"a ended with 7"}), R"(
  b failed; b ended with 0 -> Begun -a -b 7
  c failed; c ended with 0 -> Begun -a -c 7
  a ready; b ready; c ready; a failed; a ended with 0; a ended with 7; a ended with 143; c once
      more; SIGINT -> nothing
)"},
    {"Begun, and was told to stop", all_and({"SIGINT"}), R"(
  a failed -> Begun -a 130
  b failed -> Begun -b 130
  c failed -> Begun -c 130
  a ended with 0 -> Begun -a 0
  a ended with 7 -> Begun -a 7
  a ended with 143 -> Begun -a 143
  b ended with 0 -> Begun -b 0
  c ended with 0 -> Begun -c 0
  a ready; b ready; c ready; c once more; SIGINT -> nothing
)"},
    {"TooFew", all_and({"c failed", "b failed"}), R"(
  a failed; a ended with 143 -> TooFew -a -b -c, over 125
  a ended with 0 -> TooFew -a -b -c, over 0
  a ended with 7 -> TooFew -a -b -c, over 7
  SIGINT -> TooFew -b -c 130
  a ready; b ready; c ready; b failed; c failed; b ended with 0; c ended with 0; c once more ->
      nothing
)"},
    {"GivenUp", {"a failed", "b failed", "c failed"}, R"(
  SIGINT -> GivenUp -a -b -c, over 130
  a ready; b ready; c ready; a failed; b failed; c failed; a ended with 0; a ended with 7; a
      ended with 143; b ended with 0; c ended with 0; c once more -> nothing
)"}};

TEST(HostRollTest, DoesInEveryStateWhatTheTableSays) {
  test::expect_table(kEvents, kTable, {"Gathering", "Begun", "TooFew", "GivenUp"});
}

HostRoll begun(std::size_t hosts, int min_nodes) {
  HostRoll roll(hosts, min_nodes);
  for (std::size_t host = 0; host < hosts; ++host)
    EXPECT_EQ(roll.on_ready(host), host + 1 == hosts ? Step::Begin : Step::None);
  return roll;
}

TEST(HostRollTest, TheJobBeginsWhenTheLastHostHasAnswered) {
  HostRoll roll(3, 3);
  EXPECT_EQ(roll.on_ready(2), Step::None);
  EXPECT_EQ(roll.on_ready(0), Step::None);
  EXPECT_FALSE(roll.begun());
  EXPECT_EQ(roll.on_ready(1), Step::Begin);
  EXPECT_TRUE(roll.begun());
}

TEST(HostRollTest, AllHaveAnsweredBeforeItIsGivenUp) {
  HostRoll roll(3, 3);
  EXPECT_EQ(roll.on_failed(0), Step::None);
  EXPECT_EQ(roll.on_ready(1), Step::None);
  EXPECT_EQ(roll.on_failed(2), Step::GiveUp);
  EXPECT_TRUE(roll.over());
  EXPECT_EQ(roll.exit_code(), 125);
}

TEST(HostRollTest, AHostLostBeforeTheOthersAnswerIsMissing) {
  HostRoll roll(2, 2);
  EXPECT_EQ(roll.on_ready(0), Step::None);
  EXPECT_EQ(roll.on_failed(0), Step::None);
  EXPECT_EQ(roll.on_ready(1), Step::GiveUp);
}

TEST(HostRollTest, AnElasticJobBeginsWithoutThoseThatAreMissing) {
  HostRoll roll(3, 2);
  EXPECT_EQ(roll.on_failed(0), Step::None);
  EXPECT_EQ(roll.on_ready(1), Step::None);
  EXPECT_EQ(roll.on_ready(2), Step::Begin);
  EXPECT_EQ(roll.on_ended(1, 0), Step::None);
  EXPECT_EQ(roll.on_ended(2, 0), Step::None);
  EXPECT_TRUE(roll.over());
  EXPECT_EQ(roll.exit_code(), 0);
}

TEST(HostRollTest, TheExitCodeIsWhatTheAgentsSay) {
  const struct {
    int first;
    int second;
    int code;
  } cases[] = {{0, 0, 0}, {7, 7, 7}, {7, 143, 7}, {0, 7, 7}, {130, 130, 130}};
  for (const auto& [first, second, code] : cases) {
    HostRoll roll = begun(2, 2);
    EXPECT_EQ(roll.on_ended(1, first), first != 0 ? Step::Hurry : Step::None);
    EXPECT_FALSE(roll.over());
    EXPECT_EQ(roll.on_ended(0, second), Step::None);
    EXPECT_TRUE(roll.over());
    EXPECT_EQ(roll.exit_code(), code);
  }
}

TEST(HostRollTest, AHostThatIsLostEndsAJobThatNeedsIt) {
  HostRoll roll = begun(2, 2);
  EXPECT_EQ(roll.on_failed(1), Step::StopOthers);
  HostRoll failing = roll;
  EXPECT_EQ(roll.on_ended(0, 143), Step::None);
  EXPECT_EQ(roll.exit_code(), 125);
  // The job had failed before the other host was lost.
  EXPECT_EQ(failing.on_ended(0, 7), Step::None);
  EXPECT_EQ(failing.exit_code(), 7);
  HostRoll last = begun(1, 1);
  EXPECT_EQ(last.on_failed(0), Step::None);
  EXPECT_TRUE(last.over());
  EXPECT_EQ(last.exit_code(), 125);
}

TEST(HostRollTest, TheOthersMayHearOfALostHostBeforeTheStarterDoes) {
  HostRoll roll = begun(2, 2);
  EXPECT_EQ(roll.on_ended(0, 143), Step::Hurry);
  EXPECT_EQ(roll.on_failed(1), Step::None);
  EXPECT_EQ(roll.exit_code(), 125);
}

TEST(HostRollTest, AHostThatIsLostAfterTheOutcomeChangesNothing) {
  HostRoll roll = begun(2, 2);
  EXPECT_EQ(roll.on_ended(0, 0), Step::None);
  EXPECT_EQ(roll.on_failed(1), Step::None);
  EXPECT_EQ(roll.exit_code(), 0);
}

TEST(HostRollTest, AnElasticJobGoesOnWithoutAHostAndTakesItsOutcomeFromTheOthers) {
  HostRoll roll = begun(3, 1);
  EXPECT_EQ(roll.on_failed(0), Step::None);
  EXPECT_EQ(roll.on_ended(1, 3), Step::None);
  EXPECT_EQ(roll.on_ended(2, 3), Step::None);
  EXPECT_EQ(roll.exit_code(), 3);
}

TEST(HostRollTest, AHostMayComeBackWhileTheJobRunsWithoutIt) {
  HostRoll roll = begun(3, 1);
  EXPECT_FALSE(roll.may_return(1));
  EXPECT_EQ(roll.on_failed(1), Step::None);
  EXPECT_TRUE(roll.may_return(1));
  roll.on_retry(1);
  EXPECT_FALSE(roll.may_return(1));
  EXPECT_EQ(roll.on_failed(1), Step::None);
  roll.on_retry(1);
  EXPECT_EQ(roll.on_ready(1), Step::Join);
  EXPECT_EQ(roll.on_failed(0), Step::None);
  roll.on_retry(0);
  EXPECT_EQ(roll.on_ended(1, 0), Step::Outlast);
  EXPECT_FALSE(roll.over());
  EXPECT_EQ(roll.on_ended(2, 0), Step::None);
  EXPECT_TRUE(roll.over()) << "nobody waits for a host that is tried again";
  EXPECT_EQ(roll.exit_code(), 0);
}

TEST(HostRollTest, NobodyIsTriedAgainForAJobThatEndsOrHasNoRoom) {
  HostRoll fixed = begun(2, 2);
  EXPECT_EQ(fixed.on_failed(1), Step::StopOthers);
  EXPECT_FALSE(fixed.may_return(1));
  HostRoll ended = begun(3, 1);
  EXPECT_EQ(ended.on_failed(1), Step::None);
  EXPECT_EQ(ended.on_ended(0, 0), Step::Outlast);
  EXPECT_FALSE(ended.may_return(1));
  EXPECT_FALSE(ended.may_return(0));
  HostRoll stopped = begun(3, 1);
  EXPECT_EQ(stopped.on_failed(1), Step::None);
  EXPECT_EQ(stopped.on_stop(SIGINT), Step::None);
  EXPECT_FALSE(stopped.may_return(1));
}

// It came when the store was gone, and would look for it until the join timeout.
TEST(HostRollTest, ASpareThatFoundNobodyIsNotWaitedForLong) {
  HostRoll roll = begun(3, 2);
  EXPECT_EQ(roll.on_ended(0, 0), Step::None);
  EXPECT_EQ(roll.on_ended(2, 0), Step::Outlast);
  EXPECT_EQ(roll.on_ended(1, 143), Step::None);
  EXPECT_TRUE(roll.over());
  EXPECT_EQ(roll.exit_code(), 0);
}

TEST(HostRollTest, AnAgentThatLeftAloneDoesNotSpoilAJobThatSucceeds) {
  HostRoll roll = begun(3, 2);
  EXPECT_EQ(roll.on_ended(1, 143), Step::None);
  EXPECT_EQ(roll.on_ended(0, 0), Step::None);
  EXPECT_EQ(roll.on_ended(2, 0), Step::None);
  EXPECT_EQ(roll.exit_code(), 0);
}

TEST(HostRollTest, ASignalGivesUpWhatHasNotBegun) {
  HostRoll roll(2, 2);
  EXPECT_EQ(roll.on_ready(0), Step::None);
  EXPECT_EQ(roll.on_stop(SIGINT), Step::GiveUp);
  EXPECT_TRUE(roll.over());
  EXPECT_EQ(roll.exit_code(), 130);
  HostRoll running = begun(2, 2);
  EXPECT_EQ(running.on_stop(SIGTERM), Step::None);
  EXPECT_EQ(running.on_failed(0), Step::None);
  EXPECT_EQ(running.on_failed(1), Step::None);
  EXPECT_EQ(running.exit_code(), 143);
}

}  // namespace
}  // namespace drun::launcher::hosts
