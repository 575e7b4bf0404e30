// The process that takes the stacks of a node's workers: started for it, gone after it.
#pragma once

#include <string_view>

namespace drun::launcher {

// drun's first and only argument then. Nobody else uses it.
inline constexpr std::string_view kStackHelperFlag = "--take-stacks";

// Reads a LookRequest from standard input, a line, and writes a stacks::StackReport to standard
// output. The exit code. It ends with the thread that has started it.
[[nodiscard]] int run_stack_helper();

}  // namespace drun::launcher
