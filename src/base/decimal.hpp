// A number such as 1.5 at the beginning of a text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace drun {

// Takes the digits, and a point among, before or behind them, off the front of `text`. Nullopt if
// there is no digit. Not std::from_chars: as part of a program it comes with a library more.
[[nodiscard]] inline std::optional<double> take_decimal(std::string_view& text) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t size = std::min(text.find_first_not_of(kDigits), text.size());
  std::size_t digits = size;
  if (size < text.size() && text[size] == '.') {
    const auto end = std::min(text.find_first_not_of(kDigits, size + 1), text.size());
    digits += end - size - 1;
    size = end;
  }
  if (digits == 0) return std::nullopt;
  const std::string number(text.substr(0, size));
  text.remove_prefix(size);
  return std::strtod(number.c_str(), nullptr);
}

}  // namespace drun
