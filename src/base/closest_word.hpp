// "Did you mean ...?" for names that people type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drun {

// The one of `known` that was probably meant by `written`: a few letters differ, or both begin
// alike. Empty: none.
[[nodiscard]] std::string closest_word(std::string_view written,
                                       const std::vector<std::string>& known);

// Only if a few letters differ.
[[nodiscard]] std::string mistyped_word(std::string_view written,
                                        const std::vector<std::string>& known);

}  // namespace drun
