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

TEST(SuccessionTest, ASeedReplaysExactly) {
  for (const std::uint64_t seed : {7U, 23U, 99U}) {
    const SuccessionPlan plan = make_succession_plan(seed);
    EXPECT_EQ(replay(plan), replay(plan));
  }
}

}  // namespace
}  // namespace drun::simulation
