#include "base/printable.hpp"

#include <algorithm>
#include <iterator>

#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace drun {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// In order.
constexpr Range kHarmful[] = {
    {0x0000, 0x0008},    // control characters, but the tab
    {0x000a, 0x001f},    // the same
    {0x007f, 0x009f},    // DEL and C1
    {0x061c, 0x061c},    // the Arabic letter mark: turns text
    {0x200e, 0x200f},    // marks of direction
    {0x2028, 0x202e},    // line and paragraph separator, embeddings and overrides
    {0x2066, 0x206f},    // isolates, and deprecated ones that change how digits look
    {0xfeff, 0xfeff},    // the byte order mark: not seen
    {0xfff9, 0xfffb},    // annotations: text that may not be shown
    {0xe0001, 0xe0001},  // the language tag and
    {0xe0020, 0xe007f},  // tag characters: whole sentences that are not seen
};

}  // namespace

bool is_harmful(char32_t c) {
  if (c >= 0x20 && c < 0x7f) return false;
  return std::any_of(std::begin(kHarmful), std::end(kHarmful),
                     [c](const Range& range) { return c >= range.first && c <= range.last; });
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

std::string escaped(std::string_view bytes) {
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(1)) {
    const std::string_view plain = bytes.substr(0, bytes.find_first_of("\\\t"));
    text += printable(plain);
    bytes.remove_prefix(plain.size());
    if (bytes.empty()) break;
    text += bytes.front() == '\t' ? "\\t" : "\\\\";
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  return "'" + printable(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
}

std::string as_name(std::string_view text) {
  std::string shown = printable(text);
  const bool plain =
      !text.empty() && shown == text && text.find_first_of(" \t") == std::string_view::npos;
  return plain ? shown : "'" + shown + "'";
}

}  // namespace drun
