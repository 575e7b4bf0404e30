#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

using std::chrono::seconds;

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
