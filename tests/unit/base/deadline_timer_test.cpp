#include "base/deadline_timer.hpp"

#include <chrono>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

namespace drun {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::hours kHour{1};

class DeadlineTimerTest : public testing::Test {
 protected:
  asio::io_context io_;
  int times_due_ = 0;
  DeadlineTimer timer_{io_, [this] { ++times_due_; }};
};

TEST_F(DeadlineTimerTest, CallsOnceAtTheTime) {
  const auto time = Clock::now() + std::chrono::milliseconds(20);
  timer_.set(time);
  EXPECT_EQ(times_due_, 0) << "from the loop";
  io_.run();
  EXPECT_EQ(times_due_, 1);
  EXPECT_GE(Clock::now(), time);
}

TEST_F(DeadlineTimerTest, OnlyTheLastTimeCounts) {
  timer_.set(Clock::now() + kHour);
  timer_.set(Clock::now());
  timer_.set(Clock::now());
  io_.run();
  EXPECT_EQ(times_due_, 1);
}

TEST_F(DeadlineTimerTest, WithoutATimeNothingIsWaitedFor) {
  timer_.set(Clock::now() + kHour);
  timer_.set(std::nullopt);
  io_.run();
  EXPECT_EQ(times_due_, 0);
}

// Its handler is on its way when another handler changes the time.
TEST_F(DeadlineTimerTest, WhatIsDueAlreadyCanBeTakenBack) {
  bool taken_back = false;
  DeadlineTimer other(io_, [&] {
    timer_.set(std::nullopt);
    taken_back = true;
  });
  other.set(Clock::now() - kHour);
  timer_.set(Clock::now());
  io_.run();
  EXPECT_TRUE(taken_back);
  EXPECT_EQ(times_due_, 0);
}

TEST_F(DeadlineTimerTest, MayBeSetFromTheCall) {
  DeadlineTimer* self = nullptr;
  int calls = 0;
  DeadlineTimer again(io_, [&] {
    if (++calls < 3) self->set(Clock::now());
  });
  self = &again;
  again.set(Clock::now());
  io_.run();
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace drun
