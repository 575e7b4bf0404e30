// Looks at all workers of a node: at their states in one process, at their stacks a few at once,
// each in a process of its own.
#pragma once

#include <vector>

#include "launcher/look/look_request.hpp"
#include "launcher/look/looker.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

// First the states of all, which take no time; then their stacks, as far as `request.all` goes. Of
// a worker for which no time is left its state remains, with the reason. `notes` are added. Blocks,
// for that time and a second at most.
[[nodiscard]] stacks::StackReport look_at_node(const LookRequest& request, const LookTools& tools,
                                               std::vector<stacks::StackNote> notes);

}  // namespace drun::launcher
