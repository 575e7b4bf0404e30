// Whether the workers' command line can be run on this machine at all: a Python file that is not
// there is a mistake of the user, and python3 itself would only say so once for each worker.
#pragma once

#include <optional>
#include <string>

#include "launcher/options.hpp"

namespace drun::launcher {

// What would keep a worker from starting.
struct Unrunnable {
  int error = 0;          // errno
  std::string attempted;  // "open train.py", "exec python3"
  std::string advice;     // may be empty

  // As a shell: 127 where it is not there, 126 where it may not be run.
  [[nodiscard]] int exit_code() const;
  // "cannot open train.py: No such file or directory"
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] int exit_code_of_spawn_error(int error);

// Looks at the Python file of this worker, relative to the working directory: readable, and either
// no directory or one that Python can run (it has a __main__.py). Nothing where the program is no
// Python file: what a module's name means only Python knows, and any other program is tried.
[[nodiscard]] std::optional<Unrunnable> unreadable_script(const Options& options, int local_rank);

// The same for all of this node's workers, and for the interpreter of a Python file or module,
// which is looked up in the workers' PATH.
[[nodiscard]] std::optional<Unrunnable> unrunnable_python(const Options& options);

}  // namespace drun::launcher
