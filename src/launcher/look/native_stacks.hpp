// The native stacks of a process, by libdw.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "launcher/look/dwfl_library.hpp"

namespace drun::launcher {

struct NativeStack {
  std::vector<std::string> frames;  // innermost first
  std::string problem;              // why there are none; else empty
};

// Stops the threads until their stacks have been read; what they are called is found out
// afterwards. Those that do not stop before the deadline have none. Blocks for as long as the
// files of the program's libraries do.
[[nodiscard]] std::map<pid_t, NativeStack> native_stacks(
    const DwflLibrary& library, pid_t process, const std::vector<pid_t>& threads,
    std::chrono::steady_clock::time_point deadline);

}  // namespace drun::launcher
