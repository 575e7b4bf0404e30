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
  [[nodiscard]] bool waits(Time now) {
    waited_ = rest_ == 0 && small_ >= kMany && now - ended_ < kPause;
    return waited_;
  }
  // All that there was has been read and passed on: `total` bytes, `longest` of them by one read.
  void ended(std::size_t longest, std::size_t total, Time now) {
    small_ = longest < kSmall ? std::min(small_ + 1, 2 * kMany) : small_ / 2;
    if (!waited_) {
      usual_ = total;
      if (rest_ > 0) --rest_;
    } else if (total < 2 * usual_) {
      rest_ = kRest;
    }
    waited_ = false;
    ended_ = now;
  }

 private:
  static constexpr std::size_t kSmall = 2048;  // the C library's buffers are bigger
  static constexpr int kMany = 8;              // a few lines are passed on at once
  // A pause that brought nothing more: the writer waits for an answer. Times without another.
  static constexpr int kRest = 64;

  int small_ = 0;  // times in a row, about
  int rest_ = 0;   // times that are left of kRest
  bool waited_ = false;
  std::size_t usual_ = 0;  // bytes that there were without a pause, the last time
  Time ended_{};
};

}  // namespace drun::launcher
