// Where the kernel wrote the memory of a worker that crashed.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace drun::launcher {

// What the names in /proc/sys/kernel/core_pattern stand for.
struct CoreNames {
  pid_t pid = 0;
  int signal = 0;
  std::string executable;  // its path, may be empty
  std::string directory;   // the worker's working directory
  std::string host;
  bool dumped = true;  // false: there is none, and the question is why
};

// The path of the core file as a pattern for glob(3): what cannot be known from outside (the time,
// a thread's name) is a '*', characters that are special to glob are escaped. Empty for a pattern
// that is a program ("|/usr/lib/...") or empty. Pure.
[[nodiscard]] std::string core_path_pattern(std::string_view core_pattern, bool uses_pid,
                                            const CoreNames& names);

// One line on where the core of this process is: a path, or how to ask the program that took it
// ("coredumpctl info 4711"), or where it should be; if there is none, how to get one, should the
// limit of this process be the reason, else nothing. Reads /proc and the disk.
[[nodiscard]] std::string find_core(const CoreNames& names);

}  // namespace drun::launcher
