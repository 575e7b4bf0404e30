// A pipe that takes nothing more, so that whoever writes to it is held up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace drun::test {

// Writes `page`, of at most PIPE_BUF bytes, until no more of it fits, and gives how many bytes that
// were. 0: `fd` is not a pipe that can be written; a file, which is never full, is not touched.
[[nodiscard]] inline std::size_t fill_pipe(int fd, std::string_view page) {
  if (::fcntl(fd, F_GETPIPE_SZ) < 0) return 0;
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  std::size_t filled = 0;
  for (ssize_t n = 0; (n = ::write(fd, page.data(), page.size())) > 0;)
    filled += static_cast<std::size_t>(n);
  const bool full = errno == EAGAIN;
  ::fcntl(fd, F_SETFL, flags);
  return full ? filled : 0;
}

}  // namespace drun::test
