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
  const auto whole = merge_failures(std::vector{root, first, failed(6, 7)});
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
  const auto whole = merge_failures(std::vector{failed(0, 3), failed(8, 5)});
  EXPECT_EQ(whole.lowest_rank, 0);
  EXPECT_EQ(whole.lowest_code, 3);
  EXPECT_EQ(whole.highest_code, 5);
}

}  // namespace
}  // namespace drun::rendezvous
