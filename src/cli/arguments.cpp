#include "cli/arguments.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

namespace drun::store {
namespace {

[[noreturn]] void wrong(std::string_view option, std::string_view text, const std::string& wanted) {
  throw UsageError(std::string(option) + " '" + std::string(text) + "': expected " + wanted);
}

// The number at the front of `text`, which it then leaves out; nullopt without one.
template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::size_t parse_size(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  const auto number = take_number<std::size_t>(rest);
  unsigned shift = 0;
  if (rest == "K") {
    shift = 10;
  } else if (rest == "M") {
    shift = 20;
  } else if (rest == "G") {
    shift = 30;
  } else if (!rest.empty()) {
    wrong(option, text, "bytes, as in 4096, 64K, 16M or 2G");
  }
  if (!number || *number == 0 || *number > std::numeric_limits<std::size_t>::max() >> shift) {
    wrong(option, text, "bytes, as in 4096, 64K, 16M or 2G");
  }
  return *number << shift;
}

std::size_t parse_count(std::string_view option, std::string_view text) {
  std::string_view rest = text;
  const auto number = take_number<std::size_t>(rest);
  if (!number || *number == 0 || !rest.empty()) wrong(option, text, "a number above 0");
  return *number;
}

std::chrono::milliseconds parse_duration(std::string_view option, std::string_view text) {
  constexpr double kLongest = 1e9;  // seconds: more than 30 years
  std::string_view rest = text;
  const auto number = take_number<double>(rest);
  double unit = 1;
  if (rest == "ms") {
    unit = 0.001;
  } else if (rest == "m") {
    unit = 60;
  } else if (rest == "h") {
    unit = 3600;
  } else if (!rest.empty() && rest != "s") {
    unit = 0;
  }
  if (!number || unit == 0 || !std::isfinite(*number) || *number < 0 || *number * unit > kLongest) {
    wrong(option, text, "a duration, as in 10, 0.5, 250ms, 5s, 2m or 1h");
  }
  return std::chrono::milliseconds(std::llround(*number * unit * 1000));
}

long long parse_integer(std::string_view what, std::string_view text) {
  std::string_view rest = text;
  if (rest.size() > 1 && rest.starts_with('+')) rest.remove_prefix(1);
  const auto number = take_number<long long>(rest);
  if (!number || !rest.empty()) wrong(what, text, "a whole number");
  return *number;
}

}  // namespace drun::store
