#include "launcher/workers/restart_policy.hpp"

#include <cerrno>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RoundFailures::Time kStart{std::chrono::hours(1)};

process::ExitStatus code(int number) {
  return {number, 0, false};
}
process::ExitStatus killed(int signal) {
  return {0, signal, false};
}
WorkerEnd ended(process::ExitStatus status) {
  return {status, 0};
}
WorkerEnd not_begun(int error) {
  return {code(127), error};
}

TEST(RoundFailuresTest, AWorkerThatTheStopKeptFromBeginningDidNotFail) {
  RoundFailures failures;
  failures.on_end(1, not_begun(ENOENT), std::nullopt, kStart);
  failures.on_end(2, not_begun(ECANCELED), SIGTERM, kStart);
  EXPECT_EQ(failures.first(), 1U);
  EXPECT_THAT(failures.others(), IsEmpty());
}

TEST(RestartPolicyTest, AWorkerThatIsStoppedFailedByItselfOnlyIfTheStopCannotHaveCausedIt) {
  struct Row {
    process::ExitStatus status;
    process::ExitStatus first;
    int stop_signal;
    bool by_itself;
  };
  const Row rows[] = {
      {killed(SIGSEGV), code(1), SIGTERM, true},
      {killed(SIGABRT), killed(SIGSEGV), SIGTERM, true},
      {killed(SIGTERM), code(1), SIGTERM, false},
      {killed(SIGTERM), killed(SIGTERM), SIGTERM, false},
      {killed(SIGTERM), code(1), SIGUSR1, true},
      {killed(SIGUSR1), code(1), SIGUSR1, false},
      {killed(SIGKILL), code(1), SIGTERM, false},  // the grace was over
      {killed(SIGKILL), killed(SIGKILL), SIGTERM, false},
      {code(1), code(1), SIGTERM, true},
      {code(2), code(1), SIGTERM, false},  // its answer to the stop, perhaps
      {code(1), killed(SIGSEGV), SIGTERM, false},
      {code(143), code(143), SIGTERM, false},  // a shell that was asked to stop
      {code(143), code(143), SIGINT, true},
      {code(130), code(130), SIGINT, false},
      {code(127), code(127), SIGTERM, true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(failed_by_itself(row.status, row.first, row.stop_signal), row.by_itself)
        << describe(row.status) << " after " << describe(row.first) << ", stopped with "
        << row.stop_signal;
}

ExitSet codes(std::initializer_list<std::size_t> numbers) {
  ExitSet set;
  for (const auto number : numbers)
    set.codes.set(number);
  return set;
}

TEST(RestartPolicyTest, WhatCannotBeRunIsNotTriedAgainUnlessTheMachineWasBusy) {
  const Options options;
  EXPECT_TRUE(may_restart(options, not_begun(EAGAIN)));
  EXPECT_TRUE(may_restart(options, not_begun(ENOMEM)));
  for (const int error : {ENOENT, EACCES, ENOEXEC, EINVAL, EMFILE})
    EXPECT_FALSE(may_restart(options, not_begun(error))) << error;
}

TEST(RestartPolicyTest, TheUsersListsSayWhichFailuresAreWorthAnotherTry) {
  Options options;
  EXPECT_TRUE(may_restart(options, ended(code(1))));
  EXPECT_TRUE(may_restart(options, ended(killed(SIGKILL))));

  options.restart_on = codes({1, 2});
  EXPECT_TRUE(may_restart(options, ended(code(1))));
  EXPECT_FALSE(may_restart(options, ended(code(3))));
  EXPECT_FALSE(may_restart(options, ended(killed(SIGHUP))));  // signal 1, not code 1
  options.restart_on->signals.set(SIGHUP);
  EXPECT_TRUE(may_restart(options, ended(killed(SIGHUP))));

  options.no_restart_on = codes({2});
  EXPECT_TRUE(may_restart(options, ended(code(1))));
  EXPECT_FALSE(may_restart(options, ended(code(2))));
}

TEST(RestartPolicyTest, TheListThatForbidsItIsNamed) {
  Options options;
  EXPECT_EQ(why_no_restart(options, ended(code(8))), "");
  options.restart_on = codes({7});
  EXPECT_EQ(why_no_restart(options, ended(code(7))), "");
  EXPECT_EQ(why_no_restart(options, ended(code(8))), "--restart-on does not list exit code 8");
  EXPECT_EQ(why_no_restart(options, ended(killed(SIGSEGV))), "--restart-on does not list SIGSEGV");
  options.no_restart_on = codes({7});
  EXPECT_EQ(why_no_restart(options, ended(code(7))), "--no-restart-on lists exit code 7");
}

TEST(RestartPolicyTest, WhatAnotherJobDoesNotHelpAgainstIsNotTriedAgainHere) {
  Options options;
  EXPECT_TRUE(may_requeue(options, ended(code(2))));
  options.no_requeue_on = codes({2});
  options.no_requeue_on.signals.set(SIGSEGV);
  for (const auto& status : {code(2), killed(SIGSEGV)}) {
    EXPECT_FALSE(may_requeue(options, ended(status)));
    EXPECT_FALSE(may_restart(options, ended(status)));
  }
  EXPECT_TRUE(may_requeue(options, ended(code(1))));
  EXPECT_TRUE(may_restart(options, ended(code(1))));
  options.no_restart_on = codes({1});
  EXPECT_TRUE(may_requeue(options, ended(code(1))));
}

TEST(RestartPolicyTest, AnEmptyListOfFailuresAllowsNoRestart) {
  Options options;
  options.restart_on.emplace();
  EXPECT_FALSE(may_restart(options, ended(code(1))));
}

TEST(RoundFailuresTest, SuccessIsNoFailure) {
  RoundFailures failures;
  failures.on_end(1, ended(code(0)), std::nullopt, kStart);
  failures.on_end(2, ended(code(0)), SIGTERM, kStart);
  EXPECT_FALSE(failures.first());
  EXPECT_FALSE(failures.next_deadline());
  EXPECT_FALSE(failures.take_report(kStart + milliseconds(1000), true));
}

TEST(RoundFailuresTest, OneThatCouldNotBeStartedHasFailedWhateverItsCode) {
  RoundFailures failures;
  failures.on_end(1, {code(0), ENOENT}, std::nullopt, kStart);
  EXPECT_EQ(failures.first(), 1U);
}

TEST(RoundFailuresTest, TheFirstFailureWaitsForTheOthersAndIsReportedOnce) {
  RoundFailures failures;
  failures.on_end(4, ended(code(1)), std::nullopt, kStart);
  EXPECT_EQ(failures.first(), 4U);
  const auto due = kStart + RoundFailures::kSettle;
  EXPECT_EQ(failures.next_deadline(), due);
  EXPECT_FALSE(failures.take_report(due - milliseconds(1), false));
  EXPECT_TRUE(failures.take_report(due, false));
  EXPECT_FALSE(failures.take_report(due, false));
  EXPECT_FALSE(failures.take_report(due, true));
  EXPECT_FALSE(failures.next_deadline());
  EXPECT_EQ(failures.first(), 4U);  // it stays the first
}

TEST(RoundFailuresTest, NobodyIsWaitedForIfNoWorkerIsLeft) {
  RoundFailures failures;
  failures.on_end(4, ended(code(1)), std::nullopt, kStart);
  EXPECT_TRUE(failures.take_report(kStart, true));
}

TEST(RoundFailuresTest, ALaterFailureDoesNotPutTheReportOff) {
  RoundFailures failures;
  failures.on_end(4, ended(code(1)), std::nullopt, kStart);
  failures.on_end(5, ended(code(2)), std::nullopt, kStart + milliseconds(100));
  EXPECT_EQ(failures.first(), 4U);
  EXPECT_EQ(failures.next_deadline(), kStart + RoundFailures::kSettle);
}

TEST(RoundFailuresTest, OthersAreThoseThatFailedBeforeTheStopOrAsTheFirstDid) {
  RoundFailures failures;
  failures.on_end(3, ended(code(1)), std::nullopt, kStart);
  failures.on_end(2, ended(code(9)), std::nullopt, kStart);  // before the stop: whatever it gives
  failures.on_end(1, ended(code(1)), SIGTERM, kStart);
  failures.on_end(4, ended(killed(SIGTERM)), SIGTERM, kStart);
  failures.on_end(5, ended(killed(SIGBUS)), SIGTERM, kStart);
  failures.on_end(6, ended(code(0)), SIGTERM, kStart);
  EXPECT_THAT(failures.others(), ElementsAre(1U, 2U, 5U));
}

TEST(RoundFailuresTest, WhatEndsInAStopWithoutAFailureIsNone) {
  RoundFailures failures;
  failures.on_end(1, ended(killed(SIGSEGV)), SIGTERM, kStart);
  EXPECT_FALSE(failures.first());
  EXPECT_THAT(failures.others(), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
