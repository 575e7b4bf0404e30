// A few thousand simulated jobs; the program `simulate` runs as many as wanted.
#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "simulation/world.hpp"

namespace drun::simulation {
namespace {

std::string replay(const Plan& plan) {
  std::string text = describe(plan);
  for (const auto& line : World(plan, true).run().trace)
    text += line + "\n";
  return text;
}

void run(std::uint64_t first, std::uint64_t count, int most_nodes) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Plan plan = make_plan(seed, most_nodes);
    const Report report = World(plan, false).run();
    ASSERT_EQ(report.violation, "") << replay(plan);
  }
}

TEST(SimulationTest, SmallJobsKeepTheInvariantsAndEnd) {
  run(1, 1500, 4);
}

TEST(SimulationTest, JobsOfAllSizesKeepTheInvariantsAndEnd) {
  run(1'000'000, 400, 64);
}

// Each found a mistake once.
TEST(SimulationTest, SeedsThatFailedAreRunAgain) {
  for (const std::uint64_t seed : {207'650U, 248'190U, 381'945U, 514'402U, 545'754U, 3'007'765U})
    run(seed, 1, 64);
}

TEST(SimulationTest, ASeedReplaysExactly) {
  for (const std::uint64_t seed : {7U, 23U, 99U}) {
    const Plan plan = make_plan(seed, 16);
    EXPECT_EQ(replay(plan), replay(plan));
  }
}

}  // namespace
}  // namespace drun::simulation
