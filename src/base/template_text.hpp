// Text with names to be filled in, as Python's string.Template.safe_substitute takes it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// $name and ${name} become the name's value. Names are ASCII letters, digits and '_'; those that
// are not known stay as they are. "$$" is the name "$": give it the value "$", as Python does, or
// it stays "$$".
[[nodiscard]] std::string fill_template(
    std::string_view text, const std::map<std::string, std::string, std::less<>>& values);

// Of all ${name} in it, in their order.
[[nodiscard]] std::vector<std::string> names_in_braces(std::string_view text);

}  // namespace drun
