#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(TimeLeftTest, IsRoundedUpAndNeverNegative) {
  const EarliestDeadline::Time now{seconds(1000)};
  EXPECT_EQ(time_left(now + seconds(2), now), seconds(2));
  EXPECT_EQ(time_left(now + nanoseconds(1), now), milliseconds(1));
  EXPECT_EQ(time_left(now + milliseconds(3) + nanoseconds(1), now), milliseconds(4));
  EXPECT_EQ(time_left(now, now), milliseconds(0));
  EXPECT_EQ(time_left(now - seconds(2), now), milliseconds(0));
  EXPECT_EQ(time_left(EarliestDeadline::Time{}), milliseconds(0));
}

TEST(TimeLeftTest, IsAsMuchAsPollCanWaitFor) {
  EXPECT_EQ(poll_limit(milliseconds(0)), 0);
  EXPECT_EQ(poll_limit(milliseconds(1500)), 1500);
  EXPECT_EQ(poll_limit(std::chrono::hours(10'000)), 2'147'483'647);
}

TEST(EarliestDeadlineTest, IsTheFirstOfThoseThatThereAre) {
  const EarliestDeadline::Time now{seconds(1000)};
  EarliestDeadline next;
  EXPECT_EQ(next.time(), std::nullopt);
  next.include(std::nullopt, seconds(1));
  EXPECT_EQ(next.time(), std::nullopt);
  next.include(now, seconds(5));
  EXPECT_EQ(next.time(), now + seconds(5));
  next.include(now + seconds(6));
  next.include(std::nullopt);
  EXPECT_EQ(next.time(), now + seconds(5));
  next.include(now);
  EXPECT_EQ(next.time(), now);
}

}  // namespace
}  // namespace drun
