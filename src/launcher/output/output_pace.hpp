// When to let a moment pass before reading: programs that write each line by itself, without a
// pause, would wake the output thread for each of them, and that costs more than all the rest.
// Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace drun::launcher {

class ReadPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Nobody sees such a delay, and no pipe is full after it.
  static constexpr std::chrono::microseconds kPause{100};

  // There is something to read: whether to wait for more of it.
  [[nodiscard]] bool waits(Time now) const { return small_ >= kMany && now - ended_ < kPause; }
  // All that there was has been read and passed on; `longest`: what one read gave at most.
  void ended(std::size_t longest, Time now) {
    small_ = longest < kSmall ? std::min(small_ + 1, 2 * kMany) : small_ / 2;
    ended_ = now;
  }

 private:
  static constexpr std::size_t kSmall = 2048;  // the C library's buffers are bigger
  static constexpr int kMany = 8;              // a few lines are passed on at once

  int small_ = 0;  // times in a row, about
  Time ended_{};
};

}  // namespace drun::launcher
