#include "launcher/process/timer_fd.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace drun::process {

TimerFd::TimerFd(clockid_t clock) : fd_(::timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!fd_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
}

void TimerFd::set(std::optional<std::chrono::nanoseconds> when) const {
  itimerspec value{};
  if (when) {
    // Zero would disarm it, and less is refused.
    const auto at = std::max<std::int64_t>(when->count(), 1);
    value.it_value = {at / 1'000'000'000, at % 1'000'000'000};
  }
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &value, nullptr);
}

void TimerFd::clear() const {
  std::uint64_t ignored = 0;
  (void)!::read(fd_.get(), &ignored, sizeof ignored);
}

}  // namespace drun::process
