// "1 node", "3 nodes": a number with what it counts. Pure.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace drun {

// `plural`: of a word that takes more than an "s".
template <std::integral Number>
[[nodiscard]] std::string counted(Number number, std::string_view singular,
                                  std::string_view plural = {}) {
  std::string text = std::to_string(number) + " ";
  if (number == 1 || plural.empty()) text += singular;
  if (number != 1) text += plural.empty() ? "s" : plural;
  return text;
}

}  // namespace drun
