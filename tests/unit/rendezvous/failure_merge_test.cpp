#include "rendezvous/failure_merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

using testing::ElementsAre;

FailureSummary failed(int rank, int code) {
  FailureSummary failure;
  failure.rank = failure.lowest_rank = rank;
  failure.exit_code = failure.lowest_code = failure.highest_code = code;
  failure.cause = "exit code " + std::to_string(code);
  return failure;
}

FailureSummary merge(const std::vector<FailureSummary>& all) {
  std::vector<const FailureSummary*> pointers;
  for (const auto& each : all)
    pointers.push_back(&each);
  return merge_failures(pointers);
}

TEST(AddFailedTest, JoinsRanksOfTheSameCauseAndWords) {
  std::vector<FailedRanks> groups;
  add_failed(groups, {7, 7}, "exit code 1", "no");
  add_failed(groups, {3, 3}, "exit code 1", "no");
  add_failed(groups, {5, 5}, "exit code 1", "yes");
  add_failed(groups, {8, 9}, "exit code 1", "no");
  add_failed(groups, {2, 2}, "exit code 1", "no");
  add_failed(groups, {2, 3}, "exit code 1", "no");
  EXPECT_THAT(groups, ElementsAre(FailedRanks{{{2, 3}, {7, 9}}, "exit code 1", "no"},
                                  FailedRanks{{{5, 5}}, "exit code 1", "yes"}));
}

TEST(WithoutRankTest, TheRanksOwnNumberIsNoDifference) {
  for (const char* words : {"rank 3 failed", "[rank3]: ValueError", "[Rank 3] x", "RANK=3",
                            "rank: 3", "on rank_3", "global rank[3]", "rank 3"}) {
    std::string other = words;
    other.replace(other.find('3'), 1, "17");
    EXPECT_NE(without_rank(words, 3), words);
    EXPECT_EQ(without_rank(words, 3), without_rank(other, 17));
  }
  EXPECT_EQ(without_rank("rank 1 waits for rank 0 (rank 1)", 1),
            "rank # waits for rank 0 (rank #)");
}

TEST(WithoutRankTest, AnyOtherNumberIsOne) {
  for (const char* words :
       {"rank 31 failed", "rank 13", "local_rank 3", "local rank 3", "LocalRank=3", "port 3",
        "rank", "ran 3", "3", "", "rank is 3", "franc 3", "rank    3"})
    EXPECT_EQ(without_rank(words, 3), words);
}

TEST(AddFailedTest, WordsThatDifferInTheRanksOwnNumberAreThoseOfTheLowest) {
  std::vector<FailedRanks> groups;
  for (const int rank : {5, 7, 4, 6, 9})
    add_failed(groups, {rank, rank}, "exit code 1", "rank " + std::to_string(rank) + " is lost");
  add_failed(groups, {8, 8}, "exit code 1", "rank 7 is lost");
  EXPECT_THAT(groups, ElementsAre(FailedRanks{{{4, 7}, {9, 9}}, "exit code 1", "rank 4 is lost"},
                                  FailedRanks{{{8, 8}}, "exit code 1", "rank 7 is lost"}));
}

TEST(TellTogetherTest, WordsThatDifferInTheRanksOwnNumberAreOneOnAllNodes) {
  std::vector<FailureSummary> all;
  for (const int rank : {8, 6, 2, 4}) {
    auto& node = all.emplace_back(failed(rank + 1, 1));
    node.last_words = "[rank" + std::to_string(rank + 1) + "]: lost";
    add_failed(node.others, {rank, rank}, "exit code 1",
               "[rank" + std::to_string(rank) + "]: lost");
  }
  EXPECT_THAT(merge(all).others,
              ElementsAre(FailedRanks{{{2, 8}}, "exit code 1", "[rank2]: lost"}));
}

TEST(TellTogetherTest, TheFirstFailureIsTheRootAndTheOthersAreListed) {
  auto root = failed(4, 7);
  root.last_words = "bad";
  add_failed(root.others, {5, 5}, "exit code 7", "bad");
  auto first = failed(2, 7);
  first.last_words = "bad";
  add_failed(first.others, {1, 1}, "exit code 9", "");
  first.highest_code = 9;
  first.lowest_rank = 1;
  first.lowest_code = 9;
  const auto whole = merge({root, first, failed(6, 7)});
  EXPECT_EQ(whole.rank, 4);
  EXPECT_EQ(whole.exit_code, 7);
  EXPECT_EQ(whole.highest_code, 9);
  EXPECT_EQ(whole.lowest_rank, 1);
  EXPECT_EQ(whole.lowest_code, 9);
  EXPECT_THAT(whole.others, ElementsAre(FailedRanks{{{1, 1}}, "exit code 9", ""},
                                        FailedRanks{{{2, 2}, {5, 5}}, "exit code 7", "bad"},
                                        FailedRanks{{{6, 6}}, "exit code 7", ""}));
}

TEST(TellTogetherTest, ALaterNodeDoesNotHideTheLowestRank) {
  const auto whole = merge({failed(0, 3), failed(8, 5)});
  EXPECT_EQ(whole.lowest_rank, 0);
  EXPECT_EQ(whole.lowest_code, 3);
  EXPECT_EQ(whole.highest_code, 5);
}

// Communication libraries name the worker in their messages, so when one rank fails, all others say
// something of their own.
TEST(TellTogetherTest, OfManyWordsTheLowestRanksAreListedAndTheRestIsCounted) {
  constexpr int kNodes = 20'000;
  std::vector<FailureSummary> all;
  for (int i = kNodes - 1; i >= 0; --i) {
    auto& node = all.emplace_back(failed(2 * i, 1));
    node.last_words = "worker " + std::to_string(2 * i) + " waited";
    add_failed(node.others, {2 * i + 1, 2 * i + 1}, "exit code 1",
               "worker " + std::to_string(2 * i + 1) + " waited");
  }
  const auto whole = merge(all);
  EXPECT_EQ(whole.rank, 2 * (kNodes - 1));
  ASSERT_EQ(whole.others.size(), kMaxFailureGroups);
  EXPECT_EQ(whole.others.front().last_words, "worker 0 waited");
  EXPECT_EQ(whole.others.back().ranks.front().first, static_cast<int>(kMaxFailureGroups) - 1);
  EXPECT_EQ(whole.unlisted, 2 * kNodes - 1 - static_cast<int>(kMaxFailureGroups));
}

// For a store that takes little: who failed first is all that is told of ranks.
TEST(WithoutDetailsTest, TheOthersAreCountedOnly) {
  FailureSummary failure = failed(0, 3);
  failure.traceback = "long";
  failure.tail = {"longer"};
  failure.unlisted = 5;
  add_failed(failure.others, {1, 2}, "exit code 1", "one");
  add_failed(failure.others, {4, 4}, "exit code 1", "another");
  const auto brief = without_details(failure);
  EXPECT_EQ(brief.rank, 0);
  EXPECT_EQ(brief.exit_code, 3);
  EXPECT_EQ(brief.traceback, "");
  EXPECT_TRUE(brief.tail.empty());
  EXPECT_TRUE(brief.others.empty());
  EXPECT_EQ(brief.unlisted, 8);
}

}  // namespace
}  // namespace drun::rendezvous
