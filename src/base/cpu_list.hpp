// Lists of CPU or NUMA node numbers as the kernel writes them: "0-3,8". Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun {

// Ascending, each number once. Blanks around numbers and a final newline are allowed, so is an
// empty list. The error names the text.
[[nodiscard]] Result<std::vector<int>> parse_cpu_list(std::string_view text);

// `numbers` ascending, each once: {0, 1, 2, 3, 8} -> "0-3,8".
[[nodiscard]] std::string format_cpu_list(const std::vector<int>& numbers);

// What is in both; both ascending.
[[nodiscard]] std::vector<int> common_numbers(const std::vector<int>& left,
                                              const std::vector<int>& right);

}  // namespace drun
