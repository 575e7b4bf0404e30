// The agent's side: starts the process that takes stacks, and hears what it has found.
#pragma once

#include <string>

#include "launcher/look/child_output.hpp"
#include "launcher/look/look_request.hpp"

namespace drun::launcher {

// A stacks::StackReport as JSON. Blocks for request.all and a little more: for a thread that has
// nothing else to do.
[[nodiscard]] Result<std::string> take_stacks(const LookRequest& request, ChildStop& stop);

}  // namespace drun::launcher
