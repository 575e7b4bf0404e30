// A line as a shell divides it into words. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun {

// Words with blanks between; quotes and the backslash mean what they mean to sh, and nothing else
// means anything. The error says which quote is not closed.
[[nodiscard]] Result<std::vector<std::string>> shell_words(std::string_view text);

}  // namespace drun
