// Text of workers made safe to print. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace drun::launcher {

// One line as a person would see it on a terminal, safe to print and to put into JSON: what a
// carriage return overwrote is left out, escape sequences too; other control characters and bytes
// that are not UTF-8 become "\x1b". At most `limit` bytes of the line; the rest is counted:
// "... (1234 bytes more)".
[[nodiscard]] std::string harmless_line(std::string_view line, std::size_t limit);

}  // namespace drun::launcher
