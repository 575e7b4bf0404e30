// When a stop must be over at the latest: a timer with a descriptor, for an epoll.
#pragma once

#include <chrono>
#include <optional>

#include "launcher/process/timer_fd.hpp"

namespace drun::process {

class StopLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // Readable when the limit is over.
  [[nodiscard]] int fd() const { return timer_.fd(); }
  // An earlier limit that is set already stays.
  void set(std::chrono::milliseconds from_now);
  void clear();
  // True once when it is over; then no limit is set.
  [[nodiscard]] bool take_expired();

 private:
  void arm() const;

  TimerFd timer_{CLOCK_MONOTONIC};  // the clock of Clock; throws std::system_error
  std::optional<Clock::time_point> at_;
};

}  // namespace drun::process
