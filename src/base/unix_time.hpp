// The wall clock, as documents and events tell it.
#pragma once

#include <chrono>
#include <cstdint>

namespace drun {

// Milliseconds since 1970.
[[nodiscard]] inline std::int64_t unix_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace drun
