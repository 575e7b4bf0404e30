// Pauses between attempts: each about 1.5 times the last, spread at random so that the ranks of a
// job do not come back together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace drun::store {

class Backoff {
 public:
  // Precondition: 0 < first <= longest.
  Backoff(std::chrono::microseconds first, std::chrono::microseconds longest, std::uint32_t seed)
      : first_(first), longest_(longest), next_(first), random_(seed) {}

  // Between half and one and a half times the planned pause.
  [[nodiscard]] std::chrono::microseconds next() {
    std::uniform_int_distribution<std::int64_t> spread(next_.count() / 2, next_.count() * 3 / 2);
    const std::chrono::microseconds pause(spread(random_));
    next_ = std::min(next_ * 3 / 2, longest_);
    return pause;
  }

  void reset() { next_ = first_; }

 private:
  std::chrono::microseconds first_;
  std::chrono::microseconds longest_;
  std::chrono::microseconds next_;
  std::minstd_rand random_;
};

}  // namespace drun::store
