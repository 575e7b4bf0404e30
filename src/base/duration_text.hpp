// Durations for people. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace drun {

// Of something that took so long: "350 ms", "12.3 s", "3 min 20 s", "2 h 5 min".
[[nodiscard]] std::string describe_duration(std::int64_t milliseconds);
// Of a limit, to a tenth: "600 s", "1.5 s".
[[nodiscard]] std::string seconds_text(std::chrono::milliseconds limit);
// Just as it was set, "10 s", "1500 ms"; or with another `gap`, "10s".
[[nodiscard]] std::string exact_duration(std::chrono::milliseconds limit,
                                         std::string_view gap = " ");

}  // namespace drun
