#include "jobs/usage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::jobs {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two nodes of four ranks each, all alike.
std::vector<NodeUsage> alike() {
  std::vector<NodeUsage> nodes;
  for (int node = 0; node < 2; ++node) {
    NodeUsage usage{1, node, "node" + std::to_string(node), {}};
    for (int rank = 4 * node; rank < 4 * node + 4; ++rank)
      usage.ranks.push_back({rank, 12'000 + rank, 1'200 * 1'024, 0, 500, 1'000});
    nodes.push_back(std::move(usage));
  }
  return nodes;
}

TEST(UsageTest, WhatOneNodeTellsAnotherReads) {
  const NodeUsage usage = alike().back();
  const auto back = decode_usage(encode(usage));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, usage);
  for (const char* wrong :
       {"", "[]", "{}", R"({"round":1,"group_rank":0,"host":"h"})",
        R"({"round":-1,"group_rank":0,"host":"h","ranks":[]})",
        R"({"round":1,"group_rank":0,"host":7,"ranks":[]})",
        R"({"round":1,"group_rank":0,"host":"h","ranks":[[1,2,3,4,5]]})",
        R"({"round":1,"group_rank":0,"host":"h","ranks":[[1,2,3,4,5,"6"]]})",
        R"({"round":1,"group_rank":0,"host":"h","ranks":[[1,2,3,4,5,9223372036854775807]]})",
        R"({"round":1,"group_rank":0,"host":"h","ranks":[[1,-2,3,4,5,6]]})"})
    EXPECT_FALSE(decode_usage(wrong)) << wrong;
}

TEST(UsageTest, WhatIsKnownOfGpusStandsBesideTheRest) {
  NodeUsage usage{1, 0, "h", {{0, 1, 2, 3, 4, 5}, {1, 1, 2, 3, 4, 5}, {2, 1, 2, 3, 4, 5}}};
  usage.ranks[1].gpu_peak_kib = 4'096;
  usage.ranks[2].gpu_peak_kib = 0;
  usage.ranks[2].gpu_percent = 30;
  EXPECT_EQ(encode(usage),
            R"({"round":1,"group_rank":0,"host":"h","ranks":[[0,1,2,3,4,5],[1,1,2,3,4,5],)"
            R"([2,1,2,3,4,5]],"gpus":[[-1,-1],[4096,-1],[0,30]]})");
  EXPECT_EQ(decode_usage(encode(usage)).value(), usage);
  const std::string before =
      R"({"round":1,"group_rank":0,"host":"h","ranks":[[0,1,2,3,4,5]],"gpus":)";
  EXPECT_TRUE(decode_usage(before + "[[1,2]]}"));
  for (const char* wrong :
       {"7", "[]", "[[1]]", "[[1,2],[1,2]]", "[[-2,1]]", "[[1,\"2\"]]", "[[1,null]]"})
    EXPECT_FALSE(decode_usage(before + wrong + "}")) << wrong;
}

TEST(UsageTest, RanksOnGpusHaveRowsOfTheirOwn) {
  NodeUsage node{1, 0, "h", {{0}, {1}, {2}, {3}}};
  for (const std::size_t rank : {0U, 1U, 3U}) {
    node.ranks[rank].gpu_peak_kib = 20 * 1'024 * 1'024;
    node.ranks[rank].gpu_percent = 90;
  }
  node.ranks[3].gpu_percent = 45;
  const auto lines = usage_table({node}, 4);
  EXPECT_THAT(std::vector(lines.end() - 3, lines.end()),
              ElementsAre("  GPU memory          20.0 GiB  20.0 GiB (rank 0)  20.0 GiB (rank 3)",
                          "  GPU use             90%       45% (rank 3)       90% (rank 1)",
                          "  rank 3 used 0.5 times the median's GPU use: 45%, not 90%"));
}

TEST(UsageTest, ATableHasTheMedianAndTheEnds) {
  EXPECT_THAT(
      usage_table(alike(), 8),
      ElementsAre(
          "usage of 8 ranks      median   lowest                     highest",
          "  CPU time            12.0 s   12.0 s (rank 0 on node0)   12.0 s (rank 7 on node1)",
          "  peak memory         1.1 GiB  1.1 GiB (rank 0 on node0)  1.1 GiB (rank 7 on node1)",
          "  read from storage   0 KiB    0 KiB (rank 0 on node0)    0 KiB (rank 7 on node1)",
          "  written to storage  500 KiB  500 KiB (rank 0 on node0)  500 KiB (rank 7 on node1)",
          "  context switches    1000     1000 (rank 0 on node0)     1000 (rank 7 on node1)"));
}

TEST(UsageTest, RanksThatDifferAreNamedTheMostFirst) {
  auto nodes = alike();
  nodes[0].ranks[2].read_kib = 10 * 1'024 * 1'024;
  nodes[1].ranks[1].cpu_ms = 25'200;
  nodes[1].ranks[2].cpu_ms = 4'000;
  nodes[1].ranks[3].switches = 3'000;  // three times, and nothing to talk about
  const auto lines = usage_table(nodes, 9);
  EXPECT_THAT(lines.front(), ::testing::StartsWith("usage of 8 ranks of 9  "));
  EXPECT_THAT(
      std::vector(lines.end() - 3, lines.end()),
      ElementsAre("  rank 2 on node0 used much more than the median's read from storage: "
                  "10.0 GiB, not 0 KiB",
                  "  rank 6 on node1 used 0.3 times the median's CPU time: 4.0 s, not 12.0 s",
                  "  rank 5 on node1 used 2.1 times the median's CPU time: 25.2 s, not 12.0 s"));
}

TEST(UsageTest, OneRankIsAColumnAndNoneIsNothing) {
  const NodeUsage node{1, 0, "node0", {{0, 350, 2'048, 0, 0, 7}}};
  EXPECT_THAT(usage_table({node}, 1),
              ElementsAre("usage of 1 rank", "  CPU time            350 ms",
                          "  peak memory         2.0 MiB", "  read from storage   0 KiB",
                          "  written to storage  0 KiB", "  context switches    7"));
  EXPECT_THAT(usage_table({}, 4), IsEmpty());
}

TEST(UsageTest, ManyOutliersAreAFewLinesAndNamesOfOthersAreSafe) {
  NodeUsage node{1, 0, "a\x1b[2J", {}};
  for (int rank = 0; rank < 100; ++rank)
    node.ranks.push_back({rank, rank < 60 ? 1'000 : 100'000, 0, 0, 0, 0});
  auto other = node;
  other.host = "b";
  const auto lines = usage_table({node, other}, 200);
  EXPECT_EQ(lines.size(), 6U + 8U + 1U);
  EXPECT_EQ(lines.back(), "  and 72 more");
  EXPECT_THAT(lines, Contains(HasSubstr("on a\\x1b[2J")));
}

}  // namespace
}  // namespace drun::jobs
