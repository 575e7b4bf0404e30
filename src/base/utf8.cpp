#include "base/utf8.hpp"

namespace drun {
namespace {

// What the first byte says. A continuation byte, or one that only begins overlong forms or what is
// beyond U+10FFFF, begins nothing.
Utf8Character announced(unsigned char first) {
  if (first < 0x80) return {1, first};
  if (first >= 0xc2 && first <= 0xdf) return {2, first & 0x1fU};
  if (first >= 0xe0 && first <= 0xef) return {3, first & 0x0fU};
  if (first >= 0xf0 && first <= 0xf4) return {4, first & 0x07U};
  return {};
}

}  // namespace

Utf8Character first_utf8_character(std::string_view text) {
  auto [length, value] = announced(static_cast<unsigned char>(text.front()));
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return {};
    value = (value << 6U) | (byte & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (length == 3 && (value < 0x800 || surrogate)) return {};
  if (length == 4 && (value < 0x10000 || value > 0x10ffff)) return {};
  return {length, value};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = first_utf8_character(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string_view cut_utf8(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U)
    --most;
  return text.substr(0, most);
}

}  // namespace drun
