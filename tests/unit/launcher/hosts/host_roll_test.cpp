// When the job of several hosts begins, when it ends, and with which exit code.
#include "launcher/hosts/host_roll.hpp"

#include <csignal>

#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using Step = HostRoll::Step;

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
