#include "launcher/output/output_delivery.hpp"

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Step = Delivery::Step;

constexpr Delivery::Time kStart{};
constexpr Delivered kUnread{false, true, false, {7, 7}};

// Looks as often as drun does until `end`; the steps that were not Wait, with their times.
class DeliveryTest : public testing::Test {
 protected:
  struct Seen {
    Step step;
    milliseconds at;
    bool operator==(const Seen&) const = default;
  };
  static std::vector<Seen> look(Delivery& delivery, milliseconds begin, milliseconds end,
                                const Delivered& delivered = kUnread) {
    std::vector<Seen> seen;
    for (milliseconds at = begin; at < end; at += Delivery::kInterval) {
      const Step step = delivery.look(delivered, kStart + at);
      if (step != Step::Wait) seen.push_back({step, at});
      if (step == Step::Done || step == Step::GiveUp) break;
    }
    return seen;
  }
};

TEST_F(DeliveryTest, ASuccessWaitsForItsReaderAndSaysSoOnce) {
  Delivery delivery(0, false, kStart);
  EXPECT_THAT(look(delivery, milliseconds(0), seconds(3600)),
              testing::ElementsAre(Seen{Step::Tell, Delivery::kTellAfter}));
  EXPECT_EQ(delivery.look({}, kStart + seconds(3601)), Step::Done);
}

TEST_F(DeliveryTest, AFailureWaitsForTenSeconds) {
  for (const int code : {1, 124, 125, 137}) {
    Delivery delivery(code, false, kStart);
    EXPECT_THAT(look(delivery, milliseconds(0), seconds(60)),
                testing::ElementsAre(Seen{Step::Tell, Delivery::kTellAfter},
                                     Seen{Step::GiveUp, seconds(10)}));
    EXPECT_EQ(delivery.reason(), "nothing was read for 10 s");
  }
}

TEST_F(DeliveryTest, AStopWaitsForASecond) {
  for (const int code : {0, 1, 143}) {
    Delivery delivery(code, true, kStart);
    EXPECT_THAT(look(delivery, milliseconds(0), seconds(60)),
                testing::ElementsAre(Seen{Step::GiveUp, seconds(1)}));
    EXPECT_EQ(delivery.reason(), "nothing was read for 1 s");
  }
}

TEST_F(DeliveryTest, AReaderThatTakesSomethingIsWaitedForAnew) {
  Delivery delivery(1, false, kStart);
  Delivered delivered = kUnread;
  for (int second = 0; second < 100; second += 4) {
    ++delivered.taken[0];
    EXPECT_THAT(look(delivery, seconds(second), seconds(second + 4), delivered),
                testing::IsEmpty());
  }
  const milliseconds last_taken = seconds(96);
  const auto seen = look(delivery, seconds(100), seconds(200), delivered);
  ASSERT_THAT(seen, testing::SizeIs(2));
  EXPECT_EQ(seen[0].step, Step::Tell);
  EXPECT_LE(std::chrono::abs(seen[0].at - last_taken - seconds(5)), 2 * Delivery::kInterval);
  EXPECT_EQ(seen[1].step, Step::GiveUp);
  EXPECT_LE(std::chrono::abs(seen[1].at - last_taken - seconds(10)), 2 * Delivery::kInterval);
}

// drun's own words about the wait are among what standard error waits for.
TEST_F(DeliveryTest, OnlyWhatAReaderTakesIsTaken) {
  Delivery delivery(1, false, kStart);
  EXPECT_THAT(look(delivery, milliseconds(0), seconds(8)),
              testing::ElementsAre(Seen{Step::Tell, Delivery::kTellAfter}));
  Delivered delivered = kUnread;
  ++delivered.taken[1];  // which is not waited for
  EXPECT_THAT(look(delivery, seconds(8), seconds(9), delivered), testing::IsEmpty());
  delivered.waits_for_error = true;
  EXPECT_THAT(look(delivery, seconds(9), seconds(60), delivered),
              testing::ElementsAre(Seen{Step::GiveUp, seconds(10)}));
}

TEST_F(DeliveryTest, AMachineThatStoodStillIsNoReaderThatDid) {
  Delivery delivery(1, false, kStart);
  EXPECT_EQ(delivery.look(kUnread, kStart), Step::Wait);
  EXPECT_EQ(delivery.look(kUnread, kStart + seconds(600)), Step::Wait);
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
