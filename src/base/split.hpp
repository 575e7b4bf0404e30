// Cutting the kernel's text files into their fields.
#pragma once

#include <algorithm>
#include <string_view>

namespace drun {

// The part before `separator`, removed from `rest` together with it; all of `rest` if there is
// none.
inline std::string_view take_until(std::string_view& rest, char separator) {
  const auto end = std::min(rest.find(separator), rest.size());
  const auto part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// Of a list with commas between.
inline bool has_element(std::string_view list, std::string_view element) {
  while (!list.empty())
    if (take_until(list, ',') == element) return true;
  return false;
}

}  // namespace drun
