// Looks at one worker and at all processes that it has started. Runs in a process of its own,
// because a look may hang: in a file system, or with the process that it looks at.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/look/dwfl_library.hpp"
#include "launcher/look/look_request.hpp"
#include "launcher/look/python_stacks.hpp"
#include "stacks/stack_report.hpp"

namespace drun::launcher {

struct LookTools {
  std::optional<DwflLibrary> native;  // nullopt: no stacks
  PythonTool python;
  bool unwind = true;  // else only what /proc says is wanted
};

// Called as it looks. What /proc says of all threads comes first; then, process by process, the
// same with their stacks.
struct LookCalls {
  std::function<void(int process, const stacks::Sample&)> without_stack;
  std::function<void(int process, const stacks::Sample&)> with_stack;
  std::function<void(int process)> done;
  std::function<void(const std::string& text)> note;  // of the whole worker
};

void look_at(const LookRequest::Worker& worker, const LookTools& tools,
             std::chrono::steady_clock::time_point deadline, const LookCalls& calls);

// Only what state the worker's first thread is in.
void look_at_state(const LookRequest::Worker& worker, const LookCalls& calls);

}  // namespace drun::launcher
