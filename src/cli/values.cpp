#include "cli/values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/decimal.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {

void refuse(const Setting& setting, const std::string& why) {
  throw UsageError(setting.shown + " " + in_quotes(setting.value) + ": " + why);
}

// Blanks around a number come with quoted values of scripts and of files from Windows; torchrun
// does not mind them either.
std::optional<std::int64_t> lenient_integer(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  return drun::whole_number<std::int64_t>(text);
}

void refuse_number(const Setting& setting, std::optional<std::int64_t> lowest,
                   std::optional<std::int64_t> highest) {
  std::string why = "expected a whole number";
  if (lowest && highest) {
    why += " from " + std::to_string(*lowest) + " to " + std::to_string(*highest);
  } else if (lowest) {
    why += " of at least " + std::to_string(*lowest);
  }
  refuse(setting, why);
}

std::chrono::milliseconds parse_duration(const Setting& setting, bool zero,
                                         std::chrono::milliseconds bare) {
  const std::array<std::pair<std::string_view, double>, 6> units{
      {{"ms", 1},
       {"s", 1e3},
       {"m", 60e3},
       {"h", 3600e3},
       {"d", 86400e3},
       {"", static_cast<double>(bare.count())}}};
  constexpr double kLongest = 1e12;  // 31 years; a clock in nanoseconds ends at 292
  const std::string why = bare == std::chrono::milliseconds(1)
                              ? "expected a time such as 90 (milliseconds), 5s or 1m30s"
                              : "expected a time such as 90 (seconds), 5m or 1h30m";
  std::string_view rest = trimmed(setting.value);
  if (rest.empty()) refuse(setting, why);
  double total = 0;
  while (!rest.empty()) {
    const auto number = take_decimal(rest);
    if (!number) refuse(setting, why);
    const auto letters = std::min(rest.find_first_of("0123456789."), rest.size());
    const std::string_view unit = rest.substr(0, letters);
    rest.remove_prefix(letters);
    const auto* found = std::find_if(units.begin(), units.end(),
                                     [&](const auto& entry) { return entry.first == unit; });
    if (found == units.end() || (unit.empty() && total != 0)) refuse(setting, why);
    total += *number * found->second;
    if (total > kLongest) refuse(setting, "that is too long");
  }
  const std::chrono::milliseconds result(static_cast<std::int64_t>(total + 0.5));
  if (!zero && result.count() == 0) refuse(setting, "expected a time greater than zero");
  return result;
}

std::string parse_file_name(const GivenFlags& flags, std::string_view flag) {
  const Setting* setting = flags.find(flag);
  if (setting == nullptr) return "";
  if (setting->value.empty()) refuse(*setting, "expected the name of a file");
  return setting->value;
}

std::uint64_t parse_size(const Setting& setting) {
  const char* const why = "expected a size such as 500K, 100M or 2G";
  std::string_view text = setting.value;
  unsigned shift = 0;
  if (!text.empty()) {
    const auto at = std::string_view("KMGT").find(
        static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
    if (at != std::string_view::npos) {
      shift = 10U * static_cast<unsigned>(at + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = lenient_integer(text);
  if (!number || *number < 1) refuse(setting, why);
  const auto value = static_cast<std::uint64_t>(*number);
  if (value > (std::uint64_t{1} << 62U) >> shift) refuse(setting, "that is too large");
  return value << shift;
}

std::size_t parse_choice(const Setting& setting) {
  std::vector<std::string_view> words;
  for (std::string_view rest = setting.flag->choices; !rest.empty();)
    words.push_back(take_until(rest, ' '));
  return parse_choice(setting, words);
}

std::size_t parse_choice(const Setting& setting, const std::vector<std::string_view>& words) {
  const auto found = std::find(words.begin(), words.end(), setting.value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  refuse(setting, "expected " + list);
}

}  // namespace drun::cli
