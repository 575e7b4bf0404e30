// Pseudo-terminals for workers whose output ends on a terminal.
#pragma once

#include <cstddef>

#include "base/file_descriptor.hpp"

namespace drun::launcher {

struct Terminal {
  FileDescriptor master;  // non-blocking
  FileDescriptor slave;   // the worker's
};

// A pseudo-terminal that passes bytes as they are (no newline translation, no echo: the terminal
// behind drun does that) and has the window size of `like`, less `taken` columns. Throws
// std::system_error.
[[nodiscard]] Terminal open_terminal(int like, std::size_t taken);

// Gives `master` the window size of `like`, less the columns that drun puts before each line, if
// that leaves half of them. The kernel signals nobody: the agent passes SIGWINCH on.
void copy_window_size(int like, int master, std::size_t taken);

}  // namespace drun::launcher
