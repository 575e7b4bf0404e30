#include "stacks/stack_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stack_samples.hpp"

namespace drun::stacks {
namespace {

using testing::ElementsAre;

using Ranks = std::vector<NumberRange>;

TEST(StackReportTest, UnitesRangesThatOverlapOrTouch) {
  EXPECT_EQ(united({}), Ranks{});
  EXPECT_EQ(united({{4, 7}, {0, 3}}), (Ranks{{0, 7}}));
  EXPECT_EQ(united({{0, 9}, {2, 3}, {11, 11}}), (Ranks{{0, 9}, {11, 11}}));
  EXPECT_EQ(count({{0, 9}, {11, 11}}), 11U);
}

TEST(StackReportTest, FoldsEqualStacksOfANode) {
  const StackReport report =
      fold({"node0", {0, 2}},
           {worker(0, {"a", "main"}), worker(2, {"b", "main"}), worker(1, {"a", "main"})});
  ASSERT_EQ(report.groups.size(), 2U);
  EXPECT_EQ(report.groups[0].ranks, (Ranks{{2, 2}}));  // the fewest ranks first
  EXPECT_EQ(report.groups[1].ranks, (Ranks{{0, 1}}));
  EXPECT_EQ(report.groups[1].threads, 2U);
  ASSERT_EQ(report.states.size(), 1U);
  EXPECT_EQ(report.states[0].ranks, (Ranks{{0, 2}}));
  EXPECT_EQ(report.states[0].silence,
            (SilenceRange{std::chrono::seconds(0), std::chrono::seconds(2)}));
}

TEST(StackReportTest, NamesKindsAndProblemsSeparateStacks) {
  Sample unstopped = worker(3, {});
  unstopped.problem = "it does not leave the kernel";
  const StackReport report =
      fold({"node0", {0, 3}},
           {worker(0, {"a"}), thread(0, "one", {"a"}), thread(0, "two", {"a"}),
            thread(0, "one", {"a"}, Kind::Child), thread(1, "one", {"a"}), unstopped});
  ASSERT_EQ(report.groups.size(), 5U);
  EXPECT_EQ(report.groups[0].kind, Kind::Worker);
  // What the kernel says stands for the stack that is not known.
  EXPECT_EQ(
      report.groups[1].problem,
      "state S, waits in futex_do_wait, in the system call futex: it does not leave the kernel");
  EXPECT_EQ(report.groups[2].name, "two");
  EXPECT_EQ(report.groups[3].name, "one");
  EXPECT_EQ(report.groups[3].threads, 2U);
  EXPECT_EQ(report.groups[4].kind, Kind::Child);
}

TEST(StackReportTest, FoldsTheFoldsOfNodes) {
  const StackReport report = fold(two_nodes());
  ASSERT_EQ(report.nodes.size(), 2U);
  ASSERT_EQ(report.groups.size(), 3U);
  EXPECT_EQ(report.groups[0].ranks, (Ranks{{5, 5}}));
  EXPECT_EQ(report.groups[1].ranks, (Ranks{{0, 4}, {6, 7}}));
  EXPECT_EQ(report.groups[2].threads, 16U);
  EXPECT_EQ(report.states[0].wait, "cl_sync_io_wait");
}

// Whatever the order is in which the nodes answer, and however they are folded on the way.
TEST(StackReportTest, TheOrderOfFoldsDoesNotMatter) {
  const auto reports = two_nodes();
  const StackReport all = fold(reports);
  EXPECT_EQ(fold(std::vector{reports[1], reports[0]}), all);
  EXPECT_EQ(fold(std::vector{fold(std::vector{reports[1]}), fold(std::vector{reports[0]})}), all);
  EXPECT_EQ(fold(std::vector{all}), all);
}

TEST(StackReportTest, ANoteOfSeveralNodesIsThereOnce) {
  auto reports = two_nodes();
  reports[0].notes = {{"no libdw", {{0, 3}}}};
  reports[1].notes = {{"no libdw", {{4, 7}}}, {"its worker does not run", {{6, 6}}}};
  const StackReport report = fold(reports);
  EXPECT_THAT(report.notes, ElementsAre(StackNote{"its worker does not run", {{6, 6}}},
                                        StackNote{"no libdw", {{0, 7}}}));
}

TEST(StackReportTest, AnEndlessStackKeepsBothOfItsEnds) {
  std::vector<std::string> frames{"innermost"};
  frames.insert(frames.end(), 10'000, "recursion");
  frames.emplace_back("main");
  const StackReport report = fold({"node0", {0, 0}}, {worker(0, frames)});
  const auto& kept = report.groups[0].frames;
  EXPECT_EQ(kept.size(), kMostFrames + 1);
  EXPECT_EQ(kept.front(), "innermost");
  EXPECT_EQ(kept.back(), "main");
  EXPECT_THAT(kept, testing::Contains("..."));
}

TEST(StackReportTest, WhatIsTooMuchIsCounted) {
  std::vector<Sample> samples;
  for (int rank = 0; rank < 600; ++rank)
    samples.push_back(worker(rank, {std::to_string(rank) + std::string(1'000, 'x')}));
  const StackReport report = fold({"node0", {0, 599}}, samples);
  EXPECT_EQ(report.groups.size(), kMostGroups);
  EXPECT_EQ(report.left_out, 600 - kMostGroups);
  EXPECT_LT(report.groups[0].frames[0].size(), kLongestText + 4);
  EXPECT_EQ(fold(std::vector{report}).left_out, report.left_out);
}

// 10,000 ranks on 1,250 nodes.
TEST(StackReportTest, FoldsAJobOfTenThousandRanks) {
  std::vector<StackReport> reports;
  for (int node = 0; node < 1'250; ++node) {
    std::vector<Sample> samples;
    for (int rank = 8 * node; rank < 8 * node + 8; ++rank)
      samples.push_back(worker(rank, {rank == 4'711 ? "read" : "recv", "main"}));
    reports.push_back(fold({"node" + std::to_string(node), {8 * node, 8 * node + 7}}, samples));
  }
  const StackReport report = fold(reports);
  ASSERT_EQ(report.groups.size(), 2U);
  EXPECT_EQ(report.groups[0].ranks, (Ranks{{4'711, 4'711}}));
  EXPECT_EQ(report.groups[1].ranks, (Ranks{{0, 4'710}, {4'712, 9'999}}));
}

}  // namespace
}  // namespace drun::stacks
