#include "base/printable.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace drun {

bool is_harmful(char32_t c) {
  return (c < 0x20 && c != '\t') || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x2028 || c == 0x2029;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [length, value] = first_utf8_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (character == "\n")
      out += "\\n";
    else if (length == 0 || is_harmful(value))
      append_hex(out, character, "\\x");
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace drun
