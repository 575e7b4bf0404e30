#include "base/number_ranges.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(NumberRangesTest, RunsOfConsecutiveNumbersAreOneRange) {
  EXPECT_EQ(to_string(ranges_of({})), "");
  EXPECT_EQ(to_string(ranges_of({3})), "3");
  EXPECT_EQ(to_string(ranges_of({0, 1})), "0-1");
  EXPECT_EQ(to_string(ranges_of({0, 1, 2, 3, 8})), "0-3,8");
  EXPECT_EQ(to_string(ranges_of({0, 2, 4, 5, 6})), "0,2,4-6");
  EXPECT_EQ(to_string(ranges_of({7, 0, 1, 2, 5, 5, 9, 10})), "0-2,5,7,9-10");
}

TEST(NumberRangesTest, OneRankIsARankAndSeveralAreRanks) {
  EXPECT_EQ(ranks_text(std::vector<int>{3}), "rank 3");
  EXPECT_EQ(ranks_text(std::vector<int>{2, 0, 1, 7}), "ranks 0-2,7");
  EXPECT_EQ(ranks_text(std::vector<NumberRange>{{3, 3}}), "rank 3");
  EXPECT_EQ(ranks_text(std::vector<NumberRange>{{3, 4}}), "ranks 3-4");
  EXPECT_EQ(ranks_text(std::vector<NumberRange>{{0, 2}, {7, 7}}), "ranks 0-2,7");
}

}  // namespace
}  // namespace drun
