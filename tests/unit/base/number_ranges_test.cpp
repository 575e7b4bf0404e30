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

}  // namespace
}  // namespace drun
