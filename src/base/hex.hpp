// Bytes as hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace drun {

// Two lower-case digits for each byte, `before` in front of each: "\\x" gives "\x0a\xff".
inline void append_hex(std::string& out, std::string_view bytes, std::string_view before = {}) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += before;
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 15U];
  }
}

}  // namespace drun
