#include "launcher/output/flush_policy.hpp"

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Step = FlushPolicy::Step;

constexpr FlushPolicy::Time kStart{};
constexpr FlushProgress kUnread{false, true, false, {7, 7}};

// Looks as often as drun does until `end`; the steps that were not Wait, with their times.
class FlushPolicyTest : public testing::Test {
 protected:
  struct Seen {
    Step step;
    milliseconds at;
    bool operator==(const Seen&) const = default;
  };
  static std::vector<Seen> look(FlushPolicy& policy, milliseconds begin, milliseconds end,
                                const FlushProgress& progress = kUnread) {
    std::vector<Seen> seen;
    for (milliseconds at = begin; at < end; at += FlushPolicy::kInterval) {
      const Step step = policy.look(progress, kStart + at);
      if (step != Step::Wait) seen.push_back({step, at});
      if (step == Step::Done || step == Step::GiveUp) break;
    }
    return seen;
  }
};

TEST_F(FlushPolicyTest, ASuccessWaitsForItsReaderAndSaysSoOnce) {
  FlushPolicy policy(0, false, kStart);
  EXPECT_THAT(look(policy, milliseconds(0), seconds(3600)),
              testing::ElementsAre(Seen{Step::Tell, FlushPolicy::kTellAfter}));
  EXPECT_EQ(policy.look({}, kStart + seconds(3601)), Step::Done);
}

TEST_F(FlushPolicyTest, AFailureWaitsForTenSeconds) {
  for (const int code : {1, 124, 125, 137}) {
    FlushPolicy policy(code, false, kStart);
    EXPECT_THAT(look(policy, milliseconds(0), seconds(60)),
                testing::ElementsAre(Seen{Step::Tell, FlushPolicy::kTellAfter},
                                     Seen{Step::GiveUp, seconds(10)}));
    EXPECT_EQ(policy.reason(), "nothing was read for 10 s");
  }
}

TEST_F(FlushPolicyTest, AStopWaitsForASecond) {
  for (const int code : {0, 1, 143}) {
    FlushPolicy policy(code, true, kStart);
    EXPECT_THAT(look(policy, milliseconds(0), seconds(60)),
                testing::ElementsAre(Seen{Step::GiveUp, seconds(1)}));
    EXPECT_EQ(policy.reason(), "nothing was read for 1 s");
  }
}

TEST_F(FlushPolicyTest, AReaderThatTakesSomethingIsWaitedForAnew) {
  FlushPolicy policy(1, false, kStart);
  FlushProgress progress = kUnread;
  for (int second = 0; second < 100; second += 4) {
    ++progress.taken[0];
    EXPECT_THAT(look(policy, seconds(second), seconds(second + 4), progress), testing::IsEmpty());
  }
  const milliseconds last_taken = seconds(96);
  const auto seen = look(policy, seconds(100), seconds(200), progress);
  ASSERT_THAT(seen, testing::SizeIs(2));
  EXPECT_EQ(seen[0].step, Step::Tell);
  EXPECT_LE(std::chrono::abs(seen[0].at - last_taken - seconds(5)), 2 * FlushPolicy::kInterval);
  EXPECT_EQ(seen[1].step, Step::GiveUp);
  EXPECT_LE(std::chrono::abs(seen[1].at - last_taken - seconds(10)), 2 * FlushPolicy::kInterval);
}

// drun's own words about the wait are among what standard error waits for.
TEST_F(FlushPolicyTest, OnlyWhatAReaderTakesIsTaken) {
  FlushPolicy policy(1, false, kStart);
  EXPECT_THAT(look(policy, milliseconds(0), seconds(8)),
              testing::ElementsAre(Seen{Step::Tell, FlushPolicy::kTellAfter}));
  FlushProgress progress = kUnread;
  ++progress.taken[1];  // which is not waited for
  EXPECT_THAT(look(policy, seconds(8), seconds(9), progress), testing::IsEmpty());
  progress.waits_for_error = true;
  EXPECT_THAT(look(policy, seconds(9), seconds(60), progress),
              testing::ElementsAre(Seen{Step::GiveUp, seconds(10)}));
}

TEST_F(FlushPolicyTest, AMachineThatStoodStillIsNoReaderThatDid) {
  FlushPolicy policy(1, false, kStart);
  EXPECT_EQ(policy.look(kUnread, kStart), Step::Wait);
  EXPECT_EQ(policy.look(kUnread, kStart + seconds(600)), Step::Wait);
}

TEST(DeliveryWordsTest, NameTheStream) {
  EXPECT_THAT(waiting_for_reader({false, true, false, {}}),
              HasSubstr("reader of standard output,"));
  EXPECT_THAT(waiting_for_reader({false, false, true, {}}), HasSubstr("reader of standard error,"));
  EXPECT_EQ(lost_at_reader({false, true, true, {}}, "received SIGINT"),
            "the rest of standard output and error is lost: received SIGINT");
  EXPECT_EQ(lost_at_reader({false, false, false, {}}, "received SIGINT"),
            "the rest of the output is lost: received SIGINT");
}

}  // namespace
}  // namespace drun::launcher
