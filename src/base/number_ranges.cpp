#include "base/number_ranges.hpp"

namespace drun {

std::vector<NumberRange> ranges_of(const std::vector<int>& ascending) {
  std::vector<NumberRange> ranges;
  for (const int number : ascending) {
    if (!ranges.empty() && number == ranges.back().last + 1)
      ranges.back().last = number;
    else
      ranges.push_back({number, number});
  }
  return ranges;
}

std::string to_string(NumberRange range) {
  const std::string first = std::to_string(range.first);
  return range.first == range.last ? first : first + '-' + std::to_string(range.last);
}

std::string to_string(const std::vector<NumberRange>& ranges) {
  std::string text;
  for (const NumberRange& range : ranges)
    text += (text.empty() ? "" : ",") + to_string(range);
  return text;
}

}  // namespace drun
