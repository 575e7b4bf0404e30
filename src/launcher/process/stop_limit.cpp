#include "launcher/process/stop_limit.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace drun::process {

StopLimit::StopLimit() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
}

void StopLimit::set(std::chrono::milliseconds from_now) {
  const auto at = Clock::now() + from_now;
  if (at_ && *at_ <= at) return;
  at_ = at;
  arm();
}

void StopLimit::clear() {
  if (!at_) return;
  at_.reset();
  arm();
}

bool StopLimit::take_expired() {
  if (!at_ || Clock::now() < *at_) return false;
  clear();
  return true;
}

// The clock of both is CLOCK_MONOTONIC.
void StopLimit::arm() const {
  itimerspec time{};
  if (at_) {
    const auto ns = std::chrono::nanoseconds(at_->time_since_epoch()).count();
    time.it_value = {ns / 1'000'000'000, ns % 1'000'000'000};
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
}

}  // namespace drun::process
