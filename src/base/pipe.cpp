#include "base/pipe.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace drun {

Result<Pipe> try_pipe(int flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) return Error::from_errno(errno, "make a pipe");
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Pipe make_pipe(const std::string& what, int flags) {
  auto pipe = try_pipe(flags);
  if (!pipe) throw std::system_error(pipe.error().code(), what);
  return std::move(*pipe);
}

}  // namespace drun
