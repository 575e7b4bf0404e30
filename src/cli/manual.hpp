// Text for troff, of which manual pages are made. Pure.
#pragma once

#include <string>
#include <string_view>

#include "cli/program.hpp"

namespace drun::cli {

// No line begins with a control character of troff's, and a dash is one.
[[nodiscard]] std::string troff(std::string_view text);
// `name` in bold, with what it means below.
[[nodiscard]] std::string troff_entry(std::string_view name, std::string_view text);
// An entry for each variable that sets a flag under a name of its own.
[[nodiscard]] std::string troff_variables(const Program& program);

}  // namespace drun::cli
