#include "base/cpu_list.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/number_ranges.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun {
namespace {

constexpr int kMostNumber = 1'048'575;  // far above any kernel's limit; bounds the memory of "0-N"

std::optional<int> parse_number(std::string_view text) {
  const auto value = whole_number<int>(trimmed(text));
  return value && *value >= 0 && *value <= kMostNumber ? value : std::nullopt;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> result;
  std::string_view rest = trimmed(text);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto dash = item.find('-');
    const auto first = parse_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last || *last < *first ||
        (comma != std::string_view::npos && comma + 1 == rest.size())) {
      return Error(std::make_error_code(std::errc::invalid_argument),
                   "\"" + std::string(trimmed(text)) +
                       "\" is not a list of numbers and ranges such as 0-3,8");
    }
    for (int number = *first; number <= *last; ++number)
      result.push_back(number);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string format_cpu_list(const std::vector<int>& numbers) {
  return to_string(ranges_of(numbers));
}

std::vector<int> common_numbers(const std::vector<int>& left, const std::vector<int>& right) {
  std::vector<int> result;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(),
                        std::back_inserter(result));
  return result;
}

}  // namespace drun
