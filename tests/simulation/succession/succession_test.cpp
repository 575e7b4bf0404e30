// Some hundred simulated jobs whose store may be succeeded; `simulate_succession` runs as many as
// wanted.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "simulation/succession/world.hpp"

namespace drun::simulation {
namespace {

std::string replay(const SuccessionPlan& plan) {
  std::string text = describe(plan);
  for (const auto& line : SuccessionWorld(plan, true).run().trace)
    text += line + "\n";
  return text;
}

TEST(SuccessionTest, TwoRoundsNeverRunAtOnceAndAMajorityGoesOn) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const SuccessionPlan plan = make_succession_plan(seed);
    ASSERT_EQ(SuccessionWorld(plan, false).run().violation, "") << replay(plan);
  }
}

// Half of the round's nodes have never heard of it, and are cut off; the host dies, and the others
// go to a successor. A new host at the endpoint has as many as it takes for a round when the cut
// ones are back; but the store that has moved tells it so.
TEST(SuccessionTest, ANewHostDoesNotBeginTheRoundAnewWithThoseWhoHaveNotHeardOfIt) {
  SuccessionPlan plan;
  plan.nodes = 6;
  plan.min_nodes = plan.max_nodes = 4;
  plan.host_is_spare = true;
  plan.max_restarts = 1;
  plan.work_ms = 20'322;
  constexpr int kTwoToFour = 0b11100 | 6 << 16;  // in both directions
  plan.blows = {{31, Harm::Split, false, 0, 7'375, kTwoToFour},
                {1'425, Harm::Return, false, 0, 431, 0},
                {16'063, Harm::Kill, true, 0, 0, 0}};
  for (plan.seed = 1; plan.seed <= 100; ++plan.seed)
    ASSERT_EQ(SuccessionWorld(plan, false).run().violation, "") << replay(plan);
}

TEST(SuccessionTest, ASeedReplaysExactly) {
  for (const std::uint64_t seed : {7U, 23U, 99U}) {
    const SuccessionPlan plan = make_succession_plan(seed);
    EXPECT_EQ(replay(plan), replay(plan));
  }
}

}  // namespace
}  // namespace drun::simulation
