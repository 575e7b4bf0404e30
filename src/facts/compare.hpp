// How the nodes' sheets differ: the odd ones out, a line for each fact. Pure; linear in the nodes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/sheet.hpp"

namespace drun::facts {

struct NodeSheet {
  std::string node;  // its name for people; different from the others'
  Sheet sheet;
};

struct Difference {
  std::string fact;  // "GPU driver"
  bool fatal = false;
  std::string text;              // "node7: GPU driver 550.54, the other 31: 550.90"
  std::vector<std::size_t> odd;  // which of the nodes, in order: all but the largest group
  std::string_view advice;
};

// In the order of the table, then variables by name. The largest group with one value is what the
// others are odd against; of groups of one size the one with the earliest node. `model`: the node
// whose group it is, whatever its size. A node that could tell nothing is odd by itself, and has no
// part in the rest.
[[nodiscard]] std::vector<Difference> compare(const std::vector<NodeSheet>& nodes,
                                              std::optional<std::size_t> model = {});

}  // namespace drun::facts
