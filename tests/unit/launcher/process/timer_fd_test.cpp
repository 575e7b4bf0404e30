#include "launcher/process/timer_fd.hpp"

#include <poll.h>

#include <gtest/gtest.h>

#include "launcher/process/lease.hpp"

namespace drun::process {
namespace {

using namespace std::chrono_literals;

TEST(TimerFdTest, AMomentThatHasPassedWakesAtOnce) {
  const TimerFd timer(CLOCK_BOOTTIME);
  const auto wakes = [&](int limit_ms) {
    pollfd entry{timer.fd(), POLLIN, 0};
    return ::poll(&entry, 1, limit_ms) == 1;
  };
  EXPECT_FALSE(wakes(0));
  timer.set(boot_now() - 1us);
  EXPECT_TRUE(wakes(60'000));
  timer.clear();
  EXPECT_FALSE(wakes(0));
  timer.set(boot_now() + 1h);
  EXPECT_FALSE(wakes(0));
  for (const auto before_the_start : {0ns, -1ns, std::chrono::nanoseconds(-1h)}) {
    timer.set(before_the_start);
    EXPECT_TRUE(wakes(60'000)) << before_the_start.count();
  }
  timer.set(std::nullopt);
  EXPECT_FALSE(wakes(0));
}

}  // namespace
}  // namespace drun::process
