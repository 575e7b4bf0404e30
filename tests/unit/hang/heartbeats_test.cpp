#include "hang/heartbeats.hpp"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::hang {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

// Workers that all began at the same time, looked at in steps of the rule's own interval.
class HeartbeatsTest : public testing::Test {
 protected:
  void limit(std::optional<milliseconds> first, std::optional<milliseconds> next,
             std::optional<milliseconds> last = {}) {
    rule_ = Heartbeats(HeartbeatLimits{first, next, last});
  }
  void beat(std::uint32_t worker, std::optional<std::int64_t> step = {}, bool last = false) {
    for (auto& each : seen_) {
      if (each.worker != worker) continue;
      each.heartbeat = Heartbeat{{1, 1, ++stamp_}, step, last};
    }
  }
  // Who is late, once that much time is over, looks included.
  std::vector<Heartbeats::Late> after(milliseconds time) {
    std::vector<Heartbeats::Late> all;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += rule_.interval();
      const auto late = rule_.on_look(seen_, now_);
      all.insert(all.end(), late.begin(), late.end());
    }
    return all;
  }

  Heartbeats::Time now_{seconds(100)};
  std::int64_t stamp_ = 0;
  std::vector<Heartbeats::Seen> seen_{{1, now_, {}}, {2, now_, {}}};
  Heartbeats rule_{HeartbeatLimits{}};
};

TEST_F(HeartbeatsTest, TheShortestLimitSaysHowOftenToLook) {
  limit(seconds(20), seconds(10));
  EXPECT_EQ(rule_.interval(), seconds(1));
  limit(std::nullopt, seconds(3600));
  EXPECT_EQ(rule_.interval(), seconds(5));
  limit(std::nullopt, milliseconds(50));
  EXPECT_EQ(rule_.interval(), milliseconds(20));
}

TEST_F(HeartbeatsTest, WhoHasNeverGivenOneIsLateOnlyIfThereIsALimitForTheFirst) {
  limit(std::nullopt, seconds(10));
  EXPECT_THAT(after(seconds(100)), IsEmpty());
  limit(seconds(20), seconds(10));
  EXPECT_THAT(after(seconds(19)), IsEmpty());
  EXPECT_THAT(after(seconds(3)),
              ElementsAre(Heartbeats::Late{1,
                                           "gave no heartbeat within 20.0 s of its start "
                                           "(--heartbeat-start-timeout)"},
                          Heartbeats::Late{2,
                                           "gave no heartbeat within 20.0 s of its start "
                                           "(--heartbeat-start-timeout)"}));
  EXPECT_THAT(after(seconds(60)), IsEmpty());  // each is told of once
}

TEST_F(HeartbeatsTest, OneThatGoesOnIsNeverLate) {
  limit(seconds(20), seconds(10));
  for (int step = 0; step < 20; ++step) {
    beat(1, step);
    beat(2);
    EXPECT_THAT(after(seconds(9)), IsEmpty());
  }
}

TEST_F(HeartbeatsTest, OneThatStopsIsLateAndItsStepIsNamed) {
  limit(std::nullopt, seconds(10));
  beat(1, 41);
  beat(2);
  EXPECT_THAT(after(seconds(5)), IsEmpty());
  beat(2);
  EXPECT_THAT(after(seconds(8)),
              ElementsAre(Heartbeats::Late{
                  1, "gave no heartbeat for 10.0 s after step 41 (--heartbeat-timeout)", 41}));
}

TEST_F(HeartbeatsTest, OfSeveralThatAreLateThoseBehindAreTheCause) {
  limit(std::nullopt, seconds(10));
  beat(1, 42);
  beat(2, 41);
  const auto late = after(seconds(60));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late.front().worker, 2U);
}

TEST_F(HeartbeatsTest, WhoIsLateAfterAnotherIsNoCause) {
  limit(std::nullopt, seconds(10));
  beat(2);
  EXPECT_THAT(after(seconds(3)), IsEmpty());
  beat(1);
  const auto late = after(seconds(60));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late.front().worker, 2U);
}

// It was let go on.
TEST_F(HeartbeatsTest, WhoGetsOnAgainMayBeLateAgain) {
  limit(std::nullopt, seconds(10));
  beat(1, 41);
  beat(2, 41);
  EXPECT_EQ(after(seconds(60)).size(), 2U);
  beat(1, 42);
  EXPECT_THAT(after(seconds(60)), IsEmpty()) << "the other has not made progress";
  beat(1, 43);
  beat(2, 43);
  EXPECT_EQ(after(seconds(60)).size(), 2U);
}

TEST_F(HeartbeatsTest, TheFurthestBehindIsKnown) {
  limit(std::nullopt, seconds(10));
  (void)after(seconds(1));
  EXPECT_FALSE(rule_.span());
  beat(1, 42);
  (void)after(seconds(3));
  beat(2, 41);
  (void)after(seconds(1));
  ASSERT_TRUE(rule_.span());
  EXPECT_EQ(rule_.span()->behind.worker, 2U);
  EXPECT_EQ(rule_.span()->behind.step, 41);
  beat(2, 42);
  (void)after(seconds(2));
  EXPECT_EQ(rule_.span()->behind.worker, 1U);  // of equal steps the oldest
  EXPECT_GE(rule_.span()->behind.quiet, seconds(5));
  beat(1, std::nullopt, true);
  (void)after(seconds(1));
  EXPECT_EQ(rule_.span()->behind.worker, 2U);  // the other has said its last
}

TEST_F(HeartbeatsTest, TheSameStepAgainIsAHeartbeat) {
  limit(std::nullopt, seconds(10));
  for (int i = 0; i < 5; ++i) {
    beat(1, 7);
    EXPECT_THAT(after(seconds(9)), IsEmpty());
  }
}

TEST_F(HeartbeatsTest, AfterTheLastOneOnlyTheLimitOfTheEndCounts) {
  limit(std::nullopt, seconds(10));
  beat(1, std::nullopt, true);
  EXPECT_THAT(after(seconds(100)), IsEmpty());
  limit(std::nullopt, seconds(10), seconds(30));
  beat(1, std::nullopt, true);
  EXPECT_THAT(after(seconds(29)), IsEmpty());
  EXPECT_THAT(after(seconds(3)),
              ElementsAre(Heartbeats::Late{
                  1, "still ran 30.0 s after its last heartbeat (--heartbeat-end-timeout)"}));
}

TEST_F(HeartbeatsTest, TimeInWhichNobodyLookedIsNotCounted) {
  limit(seconds(20), seconds(10));
  beat(1);
  EXPECT_THAT(after(seconds(2)), IsEmpty());
  now_ += seconds(3600);
  EXPECT_THAT(after(seconds(5)), IsEmpty());
}

TEST_F(HeartbeatsTest, AWorkerThatHasEndedIsForgottenAndANewOneBeginsAnew) {
  limit(seconds(20), std::nullopt);
  EXPECT_THAT(after(seconds(15)), IsEmpty());
  seen_ = {{3, now_, {}}};
  EXPECT_THAT(after(seconds(19)), IsEmpty());
  EXPECT_EQ(after(seconds(3)).size(), 1U);
}

}  // namespace
}  // namespace drun::hang
