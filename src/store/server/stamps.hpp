// Moments and ages as the numbers that answers to votes carry. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/protocol/control_protocol.hpp"
#include "store/table/sessions.hpp"

namespace drun::store {

[[nodiscard]] inline std::uint64_t stamp_of(Time time) {
  using std::chrono::microseconds;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<microseconds>(time.time_since_epoch()).count());
}

// Not after `now`, whatever the peer says.
[[nodiscard]] inline Time time_of(std::uint64_t stamp, Time now) {
  using std::chrono::microseconds;
  return Time(microseconds(static_cast<microseconds::rep>(std::min(stamp, stamp_of(now)))));
}

// Rounded up: what is said must not be too short. Less than control::Pulsed::kNever.
[[nodiscard]] inline std::uint32_t age_in_ms(Time since, Time now) {
  const auto age = std::chrono::ceil<Milliseconds>(std::max(now - since, Time::duration(0)));
  constexpr Milliseconds::rep kMost = control::Pulsed::kNever - 1;
  return static_cast<std::uint32_t>(std::min(age.count(), kMost));
}

}  // namespace drun::store
