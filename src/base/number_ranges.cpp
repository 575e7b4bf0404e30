#include "base/number_ranges.hpp"

#include <algorithm>

namespace drun {

std::vector<NumberRange> ranges_of(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<NumberRange> ranges;
  for (const int number : numbers) {
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

std::string ranks_text(const std::vector<NumberRange>& ranks) {
  const bool one = ranks.size() == 1 && ranks.front().first == ranks.front().last;
  return (one ? "rank " : "ranks ") + to_string(ranks);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return ranks_text(ranges_of(ranks));
}

}  // namespace drun
