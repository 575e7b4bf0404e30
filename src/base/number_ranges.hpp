// Numbers as people write them: "0-3,7".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun {

struct NumberRange {
  int first = 0;
  int last = 0;

  bool operator==(const NumberRange&) const = default;
};

// The runs of consecutive numbers among `numbers`, which are in any order.
[[nodiscard]] std::vector<NumberRange> ranges_of(std::vector<int> numbers);

// "3", "4-6".
[[nodiscard]] std::string to_string(NumberRange range);
// "0-3,7".
[[nodiscard]] std::string to_string(const std::vector<NumberRange>& ranges);
// "rank 3", "ranks 0-2,7"; not for none.
[[nodiscard]] std::string ranks_text(const std::vector<NumberRange>& ranks);
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace drun
