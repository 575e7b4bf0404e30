#include "launcher/workers/time_limits.hpp"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const TimeLimits::Time kStart{};

Options with(std::optional<milliseconds> job, std::optional<milliseconds> start) {
  Options options;
  options.timeout = job;
  options.start_timeout = start;
  options.shutdown_timeout = seconds(5);
  return options;
}

TEST(TimeLimitsTest, HasNothingToSayWhereNothingWasSet) {
  TimeLimits limits(with({}, {}), kStart);
  EXPECT_FALSE(limits.next_deadline(kStart));
  EXPECT_FALSE(limits.expired(kStart + std::chrono::hours(1000)));
  EXPECT_FALSE(limits.countdown(kStart, true, ""));
}

TEST(TimeLimitsTest, TellsEachLimitOnceAtItsTime) {
  TimeLimits limits(with(seconds(10), seconds(3)), kStart);
  EXPECT_EQ(limits.next_deadline(kStart), kStart + seconds(3));
  EXPECT_FALSE(limits.expired(kStart + milliseconds(2'999)));
  EXPECT_THAT(limits.expired(kStart + seconds(3)).value_or(""),
              ::testing::HasSubstr("--start-timeout"));
  EXPECT_FALSE(limits.expired(kStart + seconds(4)));
  EXPECT_EQ(limits.next_deadline(kStart), kStart + seconds(10));
  EXPECT_EQ(limits.expired(kStart + seconds(10)), "--timeout is over");
  EXPECT_FALSE(limits.expired(kStart + seconds(11)));
  EXPECT_FALSE(limits.next_deadline(kStart + seconds(11)));
}

TEST(TimeLimitsTest, TheJobEndsWithTheEarlierOfItsLimits) {
  const TimeLimits::WallTime wall{seconds(1'000'000)};
  const auto end_of = [&](std::optional<milliseconds> timeout, std::optional<std::int64_t> job) {
    Options options = with(timeout, {});
    options.job_end = job;
    const auto end = TimeLimits(options, kStart).job_end(kStart + seconds(4), wall + seconds(4));
    return end ? std::chrono::duration_cast<seconds>(*end - wall).count() : -1;
  };
  EXPECT_EQ(end_of({}, {}), -1);
  EXPECT_EQ(end_of(seconds(10), {}), 10);
  EXPECT_EQ(end_of({}, 1'000'007), 7);
  EXPECT_EQ(end_of(seconds(10), 1'000'007), 7);
  EXPECT_EQ(end_of(seconds(10), 1'000'012), 10);
  EXPECT_EQ(end_of({}, 999'990), -10);  // it has passed
}

TEST(TimeLimitsTest, TellsOfOneLimitWhereBothAreOver) {
  TimeLimits limits(with(seconds(3), seconds(3)), kStart);
  EXPECT_EQ(limits.expired(kStart + seconds(3)), "--timeout is over");
  EXPECT_FALSE(limits.expired(kStart + seconds(3)));
}

TEST(TimeLimitsTest, ForgetsTheStartWhenTheWorkersRun) {
  TimeLimits limits(with({}, seconds(3)), kStart);
  limits.workers_run();
  EXPECT_FALSE(limits.next_deadline(kStart));
  EXPECT_FALSE(limits.expired(kStart + seconds(3)));
}

TEST(TimeLimitsTest, CountsTheGraceDownSecondBySecond) {
  TimeLimits limits(with({}, {}), kStart);
  limits.grace_begins(kStart);
  EXPECT_TRUE(limits.in_grace());
  EXPECT_EQ(limits.next_deadline(kStart), kStart + seconds(1));
  EXPECT_EQ(limits.countdown(kStart + milliseconds(1'500), false, "rank 1 on a: exit code 3"),
            "stopping the workers: rank 1 on a: exit code 3; SIGKILL in 4 s");
  EXPECT_EQ(limits.countdown(kStart + seconds(4), true, ""),
            "stopping the workers; SIGKILL in 1 s (Ctrl-C again: now)");
  EXPECT_EQ(limits.countdown(kStart + seconds(4), true, "rank 1 on a: exit code 3"),
            "stopping the workers; SIGKILL in 1 s (Ctrl-C again: now): rank 1 on a: exit code 3");
  EXPECT_FALSE(limits.countdown(kStart + seconds(5), true, "")) << "it is sent now";
  limits.grace_ends();
  EXPECT_FALSE(limits.in_grace());
  EXPECT_FALSE(limits.countdown(kStart + seconds(2), true, ""));
  EXPECT_FALSE(limits.next_deadline(kStart + seconds(2)));
}

}  // namespace
}  // namespace drun::launcher
