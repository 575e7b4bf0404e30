// Numbers of bytes for people, in units of 1024. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace drun {

// "64 GiB", "8192 KiB": whole, with two digits at least, so that what differs by a rounding reads
// the same. RLIM_INFINITY: "unlimited".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

// 350 as "350 KiB", 3'500 as "3.4 MiB": to be compared with one another.
[[nodiscard]] std::string size_text_of_kib(std::int64_t kib);

}  // namespace drun
