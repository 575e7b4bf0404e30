#include "store/server/applicants.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

constexpr Time kStart{std::chrono::hours(1)};

class Called final : public Applicant {
 public:
  std::vector<std::uint64_t> calls;  // their stamps

  void on_call(const control::Pulsed& call) override { calls.push_back(call.stamp); }
  SessionId on_welcome(Time /*now*/) override { return kNoSession; }
  void on_moved(const control::Moved& /*moved*/) override {}
};

control::Pulsed call_at(std::uint64_t stamp) {
  control::Pulsed call;
  call.stamp = stamp;
  return call;
}

class ApplicantsTest : public testing::Test {
 protected:
  ApplicantsTest() {
    waiting.add(1, voter, "a").votes = true;
    waiting.add(2, other, "a");
  }
  Applicants waiting;
  Called voter;
  Called other;
};

TEST_F(ApplicantsTest, CallsEachVoterOnceInAGeneration) {
  waiting.call(call_at(7));
  waiting.call(call_at(8));
  EXPECT_EQ(voter.calls, (std::vector<std::uint64_t>{7}));
  EXPECT_TRUE(other.calls.empty()) << "it has no vote";
  EXPECT_TRUE(waiting.was_called(1, 7));
  EXPECT_FALSE(waiting.was_called(1, 8));
  EXPECT_FALSE(waiting.was_called(2, 7));
  EXPECT_FALSE(waiting.was_called(2, 0)) << "which means no call at all";
  EXPECT_FALSE(waiting.was_called(3, 7)) << "nobody";
  waiting.uncall();
  EXPECT_FALSE(waiting.was_called(1, 7)) << "a word for the generation before";
  waiting.call(call_at(9));
  EXPECT_EQ(voter.calls, (std::vector<std::uint64_t>{7, 9}));
}

TEST_F(ApplicantsTest, OnlyVotersSayWhenAnotherStoreWasSure) {
  EXPECT_EQ(waiting.heard(kStart), kStart);
  for (auto& [number, each] : waiting)
    each.heard = kStart + Milliseconds(10 * static_cast<int>(number));
  EXPECT_EQ(waiting.heard(kStart), kStart + Milliseconds(10));
  EXPECT_EQ(waiting.heard(kStart + Milliseconds(15)), kStart + Milliseconds(15));
}

TEST_F(ApplicantsTest, WhoIsTakenWaitsNoLonger) {
  Called third;
  waiting.add(3, third, "b");
  const auto of_a = waiting.take_if([](VoterId, const auto& each) { return each.job == "a"; });
  ASSERT_EQ(of_a.size(), 2U);
  EXPECT_EQ(of_a[0].first, 1U);
  EXPECT_EQ(of_a[1].second.applicant, &other);
  EXPECT_FALSE(waiting.take(1));
  const auto last = waiting.take(3);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->job, "b");
  EXPECT_TRUE(waiting.take_all().empty());
}

}  // namespace
}  // namespace drun::store
