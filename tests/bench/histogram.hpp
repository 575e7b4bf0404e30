// Counts of durations in buckets of 1/16 of a power of two: exact to about 6 %.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace drun::bench {

class Histogram {
 public:
  void add(std::uint64_t nanoseconds) {
    ++buckets_[bucket(nanoseconds)];
    ++count_;
    max_ = std::max(max_, nanoseconds);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }

  // The duration that `share` (0 to 1) of all do not exceed; 0 without any.
  [[nodiscard]] std::uint64_t quantile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen > wanted) return std::min(upper_end(i), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kSteps = 16;

  static std::size_t bucket(std::uint64_t value) {
    if (value < kSteps) return value;
    const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 5;  // kSteps is 2^4
    return exponent * kSteps + static_cast<std::size_t>(value >> exponent);
  }
  static std::uint64_t upper_end(std::size_t bucket) {
    if (bucket < 2 * kSteps) return bucket;
    const std::size_t exponent = bucket / kSteps - 1;
    return ((kSteps + bucket % kSteps + 1) << exponent) - 1;
  }

  std::array<std::uint64_t, 64 * kSteps> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace drun::bench
