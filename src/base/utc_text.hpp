// A moment in UTC, as RFC 3339 writes it or as people do. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace drun {

// "2026-11-20T16:23:42.123Z". `time_ns`: since 1970; `digits` of the second's fraction, 1 to 9.
[[nodiscard]] std::string utc_text(std::int64_t time_ns, int digits = 9);

// "14:30:05 UTC"; with `date`: "2026-11-28 14:30:05 UTC". `time_ms`: since 1970.
[[nodiscard]] std::string utc_clock_text(std::int64_t time_ms, bool date = false);

}  // namespace drun
