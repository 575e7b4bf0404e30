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

// The first of three endpoints is cut off when it has just begun a store, and the two others begin
// one without it. Then what they had told the first one comes, and it begins a round with a node
// that has gone. Later it joins the others, and who has their store is cut off.
TEST(SuccessionTest, TheRoundOfAFirstStoreThatItsFoundersHaveLeftCountsForNothing) {
  SuccessionPlan plan;
  plan.nodes = 3;
  plan.min_nodes = plan.max_nodes = 2;
  plan.endpoints = 3;
  plan.host_is_spare = true;
  plan.max_restarts = 1;
  plan.work_ms = 43'579;
  plan.max_delay_ms = 145;
  plan.blows = {{139, Harm::Join, false, 0, 0, 1},
                {886, Harm::Cut, true, 0, 18'806, 0},
                {886, Harm::Cut, true, 0, 5'262, 0},
                {40'474, Harm::Cut, true, 0, 39'003, 0}};
  for (plan.seed = 3'000'002'501; plan.seed <= 3'000'002'600; ++plan.seed)
    ASSERT_EQ(SuccessionWorld(plan, false).run().violation, "") << replay(plan);
}

// The same, and a node that is at no endpoint stays with the first store: their round has all of
// its nodes.
TEST(SuccessionTest, NorDoesOneOfNodesThatAreAllThere) {
  SuccessionPlan plan;
  plan.nodes = 5;
  plan.min_nodes = plan.max_nodes = 2;
  plan.endpoints = 3;
  plan.work_ms = 43'579;
  plan.max_delay_ms = 145;
  constexpr int kFirstAndLast = 0b10001 | 6 << 16;  // in both directions
  for (int at = 600; at <= 900; at += 5) {
    plan.seed = static_cast<std::uint64_t>(at);
    plan.blows = {{at, Harm::Split, false, 0, 12'000, kFirstAndLast},
                  {40'474, Harm::Cut, true, 0, 39'003, 0}};
    ASSERT_EQ(SuccessionWorld(plan, false).run().violation, "") << replay(plan);
  }
}

// The nodes of the round meet at a newcomer, at the endpoint of the host that has lost power. It
// leads, and has to wait for the one that has not come.
TEST(SuccessionTest, ANewcomerThatSucceedsTheStoreWaitsForWhoIsNotHeardOf) {
  SuccessionPlan plan;
  plan.seed = 4'001'026'504;
  plan.promise = Promise::Success;
  plan.nodes = plan.max_nodes = 7;
  plan.min_nodes = 5;
  plan.endpoints = 3;
  plan.max_restarts = 4;
  plan.work_ms = 41'191;
  plan.max_delay_ms = 20;
  plan.blows = {{10'915, Harm::PowerOff, true, 0, 16'401, 0},
                {16'215, Harm::Join, true, 0, 0, 7},
                {49'294, Harm::PowerOff, true, 0, 1'328, 0}};
  EXPECT_EQ(SuccessionWorld(plan, false).run().violation, "") << replay(plan);
}

// Its workers have ended by then, the others run on without it, and their store has not moved.
TEST(SuccessionTest, ANodeThatWasCutOffComesBack) {
  SuccessionPlan plan;
  plan.nodes = plan.max_nodes = 6;
  plan.work_ms = 60'000;
  for (int duration = 8'000; duration <= 24'000; duration += 500) {
    plan.seed = static_cast<std::uint64_t>(duration);
    for (int node = 1; node < plan.nodes; ++node) {
      plan.blows = {{5'000, Harm::Cut, false, node, duration, 0}};
      const SuccessionReport report = SuccessionWorld(plan, false).run();
      ASSERT_EQ(report.violation, "") << replay(plan);
      ASSERT_EQ(report.succeeded, plan.nodes) << replay(plan);
    }
  }
}

// The store is none of theirs, and lives. With one of them stopped it has no majority, so the other
// looks elsewhere; but whoever was stopped finds it where it was.
TEST(SuccessionTest, ANodeOfTwoThatWasStoppedDoesNotTakeTheJobFromAStoreThatLives) {
  SuccessionPlan plan;
  plan.nodes = 3;
  plan.min_nodes = plan.max_nodes = 2;
  plan.host_is_spare = true;
  plan.work_ms = 60'000;
  for (int duration = 5'000; duration <= 20'000; duration += 500) {
    plan.seed = static_cast<std::uint64_t>(duration);
    for (int node = 1; node < plan.nodes; ++node) {
      plan.blows = {{5'000, Harm::Stop, false, node, duration, 0}};
      const SuccessionReport report = SuccessionWorld(plan, false).run();
      ASSERT_EQ(report.violation, "") << replay(plan);
      ASSERT_EQ(report.stores, 1) << replay(plan);
      ASSERT_EQ(report.succeeded, plan.nodes) << replay(plan);
    }
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
