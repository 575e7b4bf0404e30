// Moments at which something is due: the earliest of several, and what is left until then.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace drun {

// Rounded up, so that nobody looks again just before the deadline; nothing is left of a time that
// has passed.
[[nodiscard]] inline std::chrono::milliseconds time_left(
    std::chrono::steady_clock::time_point deadline, std::chrono::steady_clock::time_point now) {
  using std::chrono::milliseconds;
  return std::max(std::chrono::ceil<milliseconds>(deadline - now), milliseconds(0));
}
// By the clock.
[[nodiscard]] inline std::chrono::milliseconds time_left(
    std::chrono::steady_clock::time_point deadline) {
  return time_left(deadline, std::chrono::steady_clock::now());
}

// For poll() and its kind. A wait of more than a month ends too early.
[[nodiscard]] inline int poll_limit(std::chrono::milliseconds left) {
  return static_cast<int>(std::min<std::int64_t>(left.count(), std::numeric_limits<int>::max()));
}

class EarliestDeadline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Nothing is due at nullopt. `after`: due that much later than `time`.
  void include(std::optional<Time> time, Time::duration after = {}) {
    if (time && (!earliest_ || *time + after < *earliest_)) earliest_ = *time + after;
  }
  // Nullopt: nothing is due at all.
  [[nodiscard]] std::optional<Time> time() const { return earliest_; }

 private:
  std::optional<Time> earliest_;
};

}  // namespace drun
