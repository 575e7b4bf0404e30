// UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF. By hand: no library
// in the tree tells where a character ends.
#pragma once

#include <cstddef>
#include <string_view>

namespace drun {

struct Utf8Character {
  std::size_t length = 0;  // bytes; 0: what stands there is no UTF-8
  char32_t value = 0;
};

// The character at the front of `text`, which is not empty.
[[nodiscard]] Utf8Character first_utf8_character(std::string_view text);

// All of it.
[[nodiscard]] bool is_utf8(std::string_view text);

// Its beginning, of at most `most` bytes: no character is cut in two.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, std::size_t most);

}  // namespace drun
