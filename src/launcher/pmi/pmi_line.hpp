// The lines of PMI-1: "cmd=get_result rc=0 value=n1", each with a line feed at its end. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::launcher::pmi {

// Without its end: longer than any that keeps to the lengths which get_maxes tells.
inline constexpr std::size_t kLongestLine = 4'096;

// The value of `name` in a line. Empty: it has none.
[[nodiscard]] std::string field(std::string_view line, std::string_view name);

// Takes the first line out of what was received, without its end. nullopt: it is not complete yet.
// An error: it is too long.
[[nodiscard]] Result<std::optional<std::string>> take_line(std::string& received);

}  // namespace drun::launcher::pmi
