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

// Each found a mistake once: the rule that it broke.
TEST(SimulationTest, SeedsThatFailedAreRunAgain) {
  struct Found {
    std::uint64_t seed;
    const char* rule;
  };
  for (const auto& [seed, rule] : {
           Found{207'650,
                 "a time limit begins at the store's last word, never before the stopped round"},
           Found{248'190, "a new leader has its own time limit, which no member cuts short"},
           Found{381'945,
                 "a member with workers of the round keeps its rank if the store forgot it"},
           Found{514'402, "a plan is broken if a planned node lost its rank while it was written"},
           Found{545'754, "an agent that was suspended asks the store before it starts workers"},
           Found{301'573,
                 "a node that holds workers of an earlier round has its time to stop them"},
           Found{3'007'765, "the rank that a member asked for at first counts"},
           Found{4'306'298, "a store of old shows nodes that were told to go, and nobody knows"},
           Found{6'574'970, "the round before is the last that ran, known only to its members"},
           Found{510'368'751, "a leader that was out of touch has its time to hear of a stop"},
           Found{530'146'106, "a rank in a round that was forgotten is nobody's in another"},
           Found{531'072'090, "who tells of a forgotten round stops another of its number"},
           Found{510'707'780, "what one knew of a round is no news of another with its number"},
           Found{700'310'305, "who came back to a store that went back is waited for again"},
           Found{700'465'318, "who has left a round has no place in another of its number"},
           Found{704'813'658, "a leader that is refused stays while others may be told to go"},
           Found{706'326'264, "a wait of which nothing was written goes on in the next leadership"},
           Found{500'379'484, "the count of restarts is written as soon as it is known"},
           Found{706'471'074, "ranks of a round that the store forgot are kept when it is over"},
           Found{706'841'527, "who tells of one forgotten round tells nothing of another"},
           Found{707'391'644, "nobody is waited for because a refused node was told to go"},
           Found{707'439'026, "a round that its nodes cannot tell of is waited for by who saw it"},
           Found{709'205'265, "a host that is told to stop twice waits from the first time on"},
           Found{440, "a newcomer is not waited for while a failure waits for the others'"},
       }) {
    SCOPED_TRACE(rule);
    run(seed, 1, 64);
    run(seed, 1, 5);
  }
}

TEST(SimulationTest, ASeedReplaysExactly) {
  for (const std::uint64_t seed : {7U, 23U, 99U}) {
    const Plan plan = make_plan(seed, 16);
    EXPECT_EQ(replay(plan), replay(plan));
  }
}

}  // namespace
}  // namespace drun::simulation
