// The earliest of several moments at which something is due.
#pragma once

#include <chrono>
#include <optional>

namespace drun {

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
