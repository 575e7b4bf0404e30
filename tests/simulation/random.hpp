// A small generator that gives the same numbers everywhere (splitmix64).
#pragma once

#include <cstdint>

namespace drun::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 0x1234567) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // low..high, both included.
  int in(int low, int high) {
    return low + static_cast<int>(next() % (static_cast<std::uint64_t>(high - low) + 1));
  }
  bool chance(int percent) { return in(0, 99) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace drun::simulation
