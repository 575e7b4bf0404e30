// A moment as RFC 3339 writes it, in UTC. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace drun {

// "2026-11-20T16:23:42.123Z". `time_ns`: since 1970; `digits` of the second's fraction, 1 to 9.
[[nodiscard]] std::string utc_text(std::int64_t time_ns, int digits = 9);

}  // namespace drun
