// What a node says of itself: short texts by name. What comes from the store is not trusted. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::facts {

// By the keys of fact_table.hpp. A fact that a node does not have is not there.
using Sheet = std::map<std::string, std::string, std::less<>>;

inline constexpr std::size_t kMaxSheet = 16'384;  // bytes of its text
inline constexpr std::size_t kMaxFacts = 256;
inline constexpr std::size_t kMaxValue = 200;  // bytes; longer ones are cut

// Instead of facts: why a node could tell none.
inline constexpr std::string_view kTrouble = "trouble";

// JSON. Facts for which there is no room are left out.
[[nodiscard]] std::string encode(const Sheet& sheet);
// The values are printable, whatever the text holds.
[[nodiscard]] Result<Sheet> decode(std::string_view text);

}  // namespace drun::facts
