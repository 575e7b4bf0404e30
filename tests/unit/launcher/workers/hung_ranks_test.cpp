#include "launcher/workers/hung_ranks.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

WaitingRank waiting(int local_rank, const std::string& call, const std::string& file = "") {
  WaitingRank rank;
  rank.worker = static_cast<process::WorkerId>(local_rank + 1);
  rank.local_rank = local_rank;
  rank.pid = 4711 + local_rank;
  rank.place = {call, file};
  return rank;
}

// Many wait for one.
TEST(HungRanksTest, WhoWaitsElsewhereThanTheOthersFailsFirst) {
  const auto hung = hang_faults(
      {waiting(0, "futex"), waiting(1, "futex"), waiting(2, "recvfrom", " from 10.0.0.1:1")},
      seconds(600), false);
  ASSERT_EQ(hung.size(), 3U);
  EXPECT_LT(hung[2].fault.order, hung[0].fault.order);
  EXPECT_EQ(hung[0].fault.order, hung[1].fault.order);
  EXPECT_EQ(hung[2].pid, 4713);
  for (const HungRank& rank : hung) {
    EXPECT_EQ(rank.fault.exit_code, 124);
    EXPECT_TRUE(rank.fault.hangs);
    EXPECT_TRUE(rank.fault.with_others);
    EXPECT_FALSE(rank.fault.for_good);
  }
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: it waits in recvfrom, and no rank"));
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("(--hang-timeout)"));
}

TEST(HungRanksTest, WhoIsBehindInACollectiveFailsFirst) {
  auto ranks = std::vector{waiting(0, "futex"), waiting(1, ""), waiting(2, "")};
  ranks[2].behind = true;
  const auto hung = hang_faults(ranks, seconds(600), false);
  EXPECT_LT(hung[2].fault.order, hung[0].fault.order);
  EXPECT_THAT(hung[2].fault.cause, HasSubstr("hangs: NCCL says that it is behind in a collective"));
}

TEST(HungRanksTest, AnUnknownPlaceIsSaidToBeOneAndAStopIsForGood) {
  const auto hung = hang_faults({waiting(0, "")}, seconds(2), true);
  ASSERT_EQ(hung.size(), 1U);
  EXPECT_THAT(hung[0].fault.cause, HasSubstr("an unknown place"));
  EXPECT_TRUE(hung[0].fault.for_good);
}

}  // namespace
}  // namespace drun::launcher
