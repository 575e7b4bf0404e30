// Starts a program that has nothing of this process's signals: none is blocked, and each does what
// it does by default. Not for workers, which the guardian starts.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::process {

struct CleanSpawn {
  std::string file;                    // one without a slash is looked for in PATH
  std::vector<std::string> arguments;  // with the program's name
  // Its standard streams, descriptors of this process; -1: /dev/null.
  int input = -1;
  int output = -1;
  int error = -1;
  // A process group of its own: keys pressed at the terminal are not for it.
  bool own_group = true;
  // It gets no other descriptor, not even one that stays open at exec.
  bool only_streams = false;
  char* const* environment = nullptr;  // nullptr: this process's own
};

// Its number. Waits for the exec, which a file system may hold up; the error says for `what`. Any
// thread.
[[nodiscard]] Result<pid_t> spawn_clean(const CleanSpawn& how, const std::string& what);

}  // namespace drun::process
