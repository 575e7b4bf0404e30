#include "timeline/runs.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "told_job.hpp"

namespace drun::timeline {
namespace {

using events::Kind;
using test::ToldNode;
using ::testing::ElementsAre;

std::vector<std::size_t> runs(const std::vector<ToldNode>& nodes) {
  return runs_of(test::log_of(nodes));
}

TEST(RunsTest, TheNodesOfAJobAreOneRun) {
  EXPECT_THAT(runs(test::job_with_a_restart()), ElementsAre(0, 0));
}

// Also if the clock of one is an hour ahead.
TEST(RunsTest, WhoLeadsNamesTheOthers) {
  EXPECT_THAT(runs(test::job_with_a_restart(3'600'000)), ElementsAre(0, 0));
}

TEST(RunsTest, TheNextJobWithTheSameIdIsAnother) {
  ToldNode first("host", 7);
  first.joins(0).tell(Kind::AgentEnded, 1'000);
  ToldNode other("other", 8);
  other.joins(500).tell(Kind::AgentEnded, 1'100);
  ToldNode second("host", 9);
  second.joins(5'000).tell(Kind::AgentEnded, 6'000);
  EXPECT_THAT(runs({second, first, other}), ElementsAre(1, 0, 0));
}

TEST(RunsTest, JobsThatRunAtOneTimeAreTold) {
  ToldNode one("host", 7);
  one.joins(0).tell(Kind::AgentEnded, 1'000);
  ToldNode two("host", 8);
  two.id("other").joins(500).tell(Kind::AgentEnded, 1'100);
  EXPECT_THAT(runs({one, two}), ElementsAre(0, 1));
}

TEST(RunsTest, NobodyIsNoRun) {
  EXPECT_TRUE(runs({}).empty());
}

}  // namespace
}  // namespace drun::timeline
