#include "launcher/output/sanitize.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace drun::launcher {
namespace {

// The length of the escape sequence that begins at text[0] == ESC; at least 1.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return 1;
  const char kind = text[1];
  if (kind == '[') {  // CSI: up to a final byte @..~
    for (std::size_t i = 2; i < text.size(); ++i) {
      const char c = text[i];
      if (c >= '@' && c <= '~') return i + 1;
      if (c < ' ') return i;  // broken off
    }
    return text.size();
  }
  if (kind == ']' || kind == 'P' || kind == '^' || kind == '_' || kind == 'X') {
    for (std::size_t i = 2; i < text.size(); ++i) {  // a string, up to BEL or ESC backslash
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b') return i + 1 < text.size() && text[i + 1] == '\\' ? i + 2 : i;
    }
    return text.size();
  }
  if (kind >= ' ' && kind <= '/') {  // ESC intermediate... final: character sets
    std::size_t i = 2;
    while (i < text.size() && text[i] >= ' ' && text[i] <= '/')
      ++i;
    return std::min(i + 1, text.size());
  }
  return kind >= '0' && kind <= '~' ? 2 : 1;
}

// What remains visible of a line with carriage returns: the last piece that shows something.
std::string_view after_returns(std::string_view line) {
  while (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  const auto at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

}  // namespace

std::string harmless_line(std::string_view line, std::size_t limit) {
  line = after_returns(line);
  std::string out;
  std::size_t at = 0;
  while (at < line.size()) {
    const std::string_view rest = line.substr(at);
    if (rest.front() == '\x1b') {
      at += escape_length(rest);
      continue;
    }
    const auto [length, value] = first_utf8_character(rest);
    const std::size_t taken = std::max<std::size_t>(length, 1);
    std::string shown;
    if (length == 0 || is_harmful(value))
      append_hex(shown, rest.substr(0, taken), "\\x");
    else
      shown = rest.substr(0, taken);
    if (out.size() + shown.size() > limit)
      return out + "... (" + std::to_string(line.size() - at) + " bytes more)";
    out += shown;
    at += taken;
  }
  return out;
}

}  // namespace drun::launcher
