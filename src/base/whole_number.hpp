// A text that is a number from its first to its last character.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace drun {

// Nullopt if anything stands around the number (blanks, a '+', a unit) or it does not fit in `T`.
template <typename T>
[[nodiscard]] std::optional<T> whole_number(std::string_view text, int base = 10) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace drun
