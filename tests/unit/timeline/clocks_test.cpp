#include "timeline/clocks.hpp"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "told_job.hpp"

namespace drun::timeline {
namespace {

using events::Kind;
using test::job_with_a_restart;
using test::kDay;
using test::kMs;
using test::ToldNode;

struct Corrected {
  Log log;
  std::vector<ClockNote> notes;
};

Corrected corrected(const std::vector<ToldNode>& nodes) {
  Corrected result{test::log_of(nodes), {}};
  result.notes = set_clocks_right(result.log, runs_of(result.log));
  return result;
}

// In milliseconds by the job's clock: the time of the first such event of a node.
std::int64_t time_of(const Log& log, std::size_t agent, Kind kind) {
  const auto found = std::find_if(
      log.entries.begin(), log.entries.end(),
      [&](const LogEntry& entry) { return entry.agent == agent && entry.kind == kind; });
  return found == log.entries.end() ? -1 : (found->at_ns - kDay) / kMs;
}

TEST(ClocksTest, ClocksThatAgreeAreLeftAlone) {
  const auto job = corrected(job_with_a_restart());
  EXPECT_TRUE(job.notes.empty());
  EXPECT_EQ(time_of(job.log, 1, Kind::RoundBegun), 101);
}

TEST(ClocksTest, WhatAllSeeAtOnceTellsAnOffset) {
  for (const std::int64_t ahead : {-7'200'000, -5'000, -200, 300, 4'000, 90'000'000}) {
    const auto job = corrected(job_with_a_restart(ahead));
    ASSERT_EQ(job.notes.size(), 1U) << ahead;
    EXPECT_EQ(job.notes.front().hostname, "node1");
    EXPECT_TRUE(job.notes.front().compared);
    // Messages take a millisecond in this job.
    EXPECT_NEAR(double(job.notes.front().offset_ns / kMs), double(-ahead), 2) << ahead;
    EXPECT_NEAR(double(time_of(job.log, 1, Kind::RoundBegun)), 101, 2) << ahead;
    EXPECT_NEAR(double(time_of(job.log, 1, Kind::AgentEnded)), 1003, 2) << ahead;
  }
}

// 40 ms are too few to tell from the way of a message; but no effect comes before its cause.
TEST(ClocksTest, ASmallOffsetIsTakenAwayAsFarAsCausesTell) {
  const auto job = corrected(job_with_a_restart(40));
  ASSERT_EQ(job.notes.size(), 1U);
  EXPECT_LE(time_of(job.log, 1, Kind::WorkerExited), time_of(job.log, 0, Kind::RoundStopping));
  EXPECT_EQ(job.notes.front().offset_ns / kMs, -35);
}

TEST(ClocksTest, OneNodeThatIsLateInARoundDoesNotMoveItsClock) {
  ToldNode node0("node0", 10);
  ToldNode node1("node1", 11);
  node0.joins(0).tell(Kind::LeaderElected, 5);
  node1.joins(0);
  for (const std::int64_t round : {1, 2, 3}) {
    node0.begins(1'000 * round, round, 0).tell(Kind::RoundEnded, 1'000 * round + 900);
    node1.begins(1'000 * round + (round == 2 ? 800 : 0), round, 1);
    node1.tell(Kind::RoundEnded, 1'000 * round + 900);
  }
  EXPECT_TRUE(corrected({node0, node1}).notes.empty());
}

TEST(ClocksTest, AgentsOfOneHostShareItsClock) {
  ToldNode node0("host", 10);
  ToldNode node1("host", 11);
  node0.joins(0).tell(Kind::LeaderElected, 5).begins(100, 1, 0);
  node1.joins(0).begins(400, 1, 1);
  const auto job = corrected({node0, node1});
  EXPECT_TRUE(job.notes.empty());
  EXPECT_EQ(time_of(job.log, 1, Kind::RoundBegun), 400);
}

TEST(ClocksTest, AHostThatCannotBeComparedIsNamed) {
  ToldNode node0("node0", 10);
  node0.joins(0).tell(Kind::LeaderElected, 5).begins(100, 1, 0);
  ToldNode spare("spare", 11);
  spare.joins(50);
  const auto job = corrected({node0, spare});
  ASSERT_EQ(job.notes.size(), 1U);
  EXPECT_EQ(job.notes.front().hostname, "spare");
  EXPECT_FALSE(job.notes.front().compared);
  EXPECT_EQ(job.notes.front().offset_ns, 0);
}

TEST(ClocksTest, NothingIsNothing) {
  Log log;
  EXPECT_TRUE(set_clocks_right(log, {}).empty());
}

}  // namespace
}  // namespace drun::timeline
