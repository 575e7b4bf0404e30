// Values that flags of more than one program take: numbers, sizes, times, words. Each function
// throws UsageError naming the flag or variable as the user wrote it, the value, and what is
// allowed. Blanks around a number do not matter. Pure.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/parse.hpp"

namespace drun::cli {

// "--nnodes '0': <why>"
[[noreturn]] void refuse(const Setting& setting, const std::string& why);

// "12", "+3", " -4 ": a whole number as Python's int() reads it; nullopt: none of 64 bits
[[nodiscard]] std::optional<std::int64_t> lenient_integer(std::string_view text);
// "expected a whole number from 1 to 10"; a limit of the type goes without saying.
[[noreturn]] void refuse_number(const Setting& setting, std::optional<std::int64_t> lowest,
                                std::optional<std::int64_t> highest);

template <std::signed_integral Number>
[[nodiscard]] Number parse_integer(const Setting& setting,
                                   Number lowest = std::numeric_limits<Number>::min(),
                                   Number highest = std::numeric_limits<Number>::max()) {
  using Limits = std::numeric_limits<Number>;
  const auto value = lenient_integer(setting.value);
  if (value && *value >= lowest && *value <= highest) return static_cast<Number>(*value);
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  if (lowest > Limits::min()) low = lowest;
  if (highest < Limits::max()) high = highest;
  refuse_number(setting, low, high);
}

// "90", "1.5", "5m", "1h30m", "500ms", "2d"; not negative; `zero` allows 0. `bare`: what a number
// without a unit counts.
[[nodiscard]] std::chrono::milliseconds parse_duration(
    const Setting& setting, bool zero,
    std::chrono::milliseconds bare = std::chrono::milliseconds(1'000));
// "4096", "500K", "100m", "2G", "1T": bytes, in powers of 1024; not 0
[[nodiscard]] std::uint64_t parse_size(const Setting& setting);
// The name of a file, or of what else may not be empty; "": it is not given.
[[nodiscard]] std::string parse_file_name(const GivenFlags& flags, std::string_view flag);
// One of the choices that the flag's row has; the index of the one given.
[[nodiscard]] std::size_t parse_choice(const Setting& setting);
// One of `words`, if they are not those of the row.
[[nodiscard]] std::size_t parse_choice(const Setting& setting,
                                       const std::vector<std::string_view>& words);

}  // namespace drun::cli
