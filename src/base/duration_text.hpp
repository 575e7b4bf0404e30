// A time for people. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace drun {

// "350 ms", "12.3 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string describe_duration(std::int64_t milliseconds);

}  // namespace drun
