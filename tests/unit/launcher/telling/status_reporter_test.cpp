#include "launcher/telling/status_reporter.hpp"

#include <signal.h>

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StatusReporterTest : public testing::Test {
 protected:
  StatusReporterTest() { log::configure("drun", log::Level::Info); }
  ~StatusReporterTest() override { log::configure("drun", log::Level::Warning); }

  StatusScreen screen(bool terminal = false) {
    return {terminal, [this](std::string text) { lines_.push_back(std::move(text)); },
            [this](std::string text) { status_ += text; }, [] { return std::size_t{0}; }};
  }

  std::vector<std::string> lines_;
  std::string status_;
  StatusReporter::Time now_;
};

TEST_F(StatusReporterTest, TheLogIsTakenOverAndGivenBack) {
  {
    const StatusReporter reporter(screen(), nullptr, true);
    log::warning("one");
  }
  EXPECT_THAT(lines_, ElementsAre("drun: warning: one\n"));
}

TEST_F(StatusReporterTest, ANeighbourDoesNotRepeatWhatWasSaid) {
  SharedLogDedup first;
  StatusReporter reporter(screen(), &first, true);
  reporter.say("one\n");
  reporter.say("one\n");
  EXPECT_THAT(lines_, ElementsAre("one\n", "one\n")) << "its own words it may repeat";
}

TEST_F(StatusReporterTest, OnceWorkersStartNothingIsWaitedForAnyMore) {
  StatusReporter reporter(screen(), nullptr, false);
  reporter.waiting("spare: not needed", now_, true);
  reporter.workers_start();
  EXPECT_EQ(reporter.waits_for(), "");
  EXPECT_FALSE(reporter.spare());
  EXPECT_EQ(reporter.line().next_deadline(), std::nullopt) << "nor said later";
}

TEST_F(StatusReporterTest, StateChangesAreNewsOnlyAmongSeveralNodes) {
  StatusReporter(screen(), nullptr, true).state("the round begins");
  EXPECT_THAT(lines_, IsEmpty());
  StatusReporter(screen(), nullptr, false).state("the round begins");
  EXPECT_THAT(lines_, ElementsAre("drun: the round begins\n"));
}

TEST_F(StatusReporterTest, TheReasonOfAStopIsSaidOnceARound) {
  StatusReporter reporter(screen(), nullptr, false);
  reporter.stopping("a node left");
  reporter.stopping("a node left");
  EXPECT_THAT(lines_, ElementsAre("drun: stopping the workers: a node left\n"));
  reporter.workers_start();
  reporter.stopping("a node left");
  EXPECT_THAT(lines_, testing::SizeIs(2));
}

TEST_F(StatusReporterTest, ASignalThatNobodyGetsIsAWarningAndNewsOnce) {
  StatusReporter reporter(screen(), nullptr, true);
  for (const bool nobody : {true, true, false})
    reporter.forwarded(SIGUSR1, nobody);
  EXPECT_THAT(lines_,
              ElementsAre("drun: warning: received SIGUSR1, but no worker runs here now: nobody "
                          "gets it\n",
                          "drun: received SIGUSR1: passed on to the workers\n"));
}

TEST_F(StatusReporterTest, ASignalIsForTheWorkersOfThisNodeUnlessAllNodesGetIt) {
  for (const bool all : {false, true}) {
    StatusReporter reporter(screen(), nullptr, false);
    if (all) reporter.all_nodes_get_signals();
    reporter.forwarded(SIGUSR1, false);
  }
  EXPECT_THAT(lines_, ElementsAre("drun: received SIGUSR1: passed on to the workers of this node\n",
                                  "drun: received SIGUSR1: passed on to the workers\n"));
}

TEST_F(StatusReporterTest, WhatIsWaitedForIsALineOrRewrittenInPlace) {
  for (const bool terminal : {false, true}) {
    lines_.clear();
    StatusReporter reporter(screen(terminal), nullptr, false);
    reporter.waiting("1 of 2 nodes", now_);
    reporter.line().on_time(now_ + milliseconds(1000));
    EXPECT_EQ(lines_.size(), terminal ? 0U : 1U);
    EXPECT_EQ(status_.find("1 of 2 nodes") != std::string::npos, terminal) << status_;
  }
}

TEST_F(StatusReporterTest, ATimeLimitTellsTheStateOfTheRanksOnce) {
  StatusReporter reporter(screen(), nullptr, true);
  reporter.at_limit({{"rank 0: running for 1 s"}, {"rank 1: not started"}});
  reporter.at_limit({{"rank 0: running for 2 s"}});
  EXPECT_THAT(lines_, ElementsAre("drun: warning: rank 0: running for 1 s\n",
                                  "drun: warning: rank 1: not started\n"));
}

TEST_F(StatusReporterTest, ATimeLimitBeforeTheWorkersTellsWhatIsWaitedFor) {
  StatusReporter waits(screen(), nullptr, true);
  waits.waiting("1 of 2 nodes", now_);
  waits.at_limit({});
  EXPECT_THAT(lines_, ElementsAre("drun: warning: 1 of 2 nodes\n"));
  lines_.clear();
  StatusReporter(screen(), nullptr, true).at_limit({});
  EXPECT_THAT(lines_, ElementsAre("drun: warning: no worker of this node was started yet\n"));
}

TEST_F(StatusReporterTest, WhatIsLeftBehindIsSaidOnce) {
  StatusReporter reporter(screen(), nullptr, true);
  reporter.left_behind("");
  reporter.left_behind("the workers leave process 7 behind");
  reporter.left_behind("the workers leave process 7 behind");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("process 7")));
}

TEST_F(StatusReporterTest, ASilenceAndASpareHaveTheirColour) {
  log::use_color(true);
  StatusReporter reporter(screen(true), nullptr, true);
  reporter.at_limit({{"rank 0: running"}, {"rank 1: silent", true}});
  EXPECT_THAT(lines_, ElementsAre("drun: warning: rank 0: running\n",
                                  "drun: \033[33mwarning: rank 1: silent\033[0m\n"));
  EXPECT_THAT(reporter.states_at_limit(), ElementsAre("rank 0: running", "rank 1: silent"));
  reporter.waiting("spare: not needed", now_, true);
  reporter.line().on_time(now_ + milliseconds(1'000));
  EXPECT_EQ(status_, "\r\033[K\033[?7l\033[2mdrun: spare: not needed\033[0m\033[?7h");
  reporter.waiting("1 of 2 nodes", now_ + milliseconds(1'500));
  EXPECT_THAT(status_, HasSubstr("\033[?7ldrun: 1 of 2 nodes\033[?7h"));
  log::use_color(false);
}

}  // namespace
}  // namespace drun::launcher
