// A pipe: what is written to one end is read from the other. Both are closed at exec.
#pragma once

#include <string>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"

namespace drun {

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

// `flags`: O_NONBLOCK, for both ends. The error is that of "make a pipe".
[[nodiscard]] Result<Pipe> try_pipe(int flags = 0);
// Throws std::system_error, which says for `what`.
[[nodiscard]] Pipe make_pipe(const std::string& what, int flags = 0);

}  // namespace drun
