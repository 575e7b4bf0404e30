// A pipe that takes nothing more, so that whoever writes to it is held up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"

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

class FullPipe {
 public:
  FullPipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
    ::fcntl(fd(), F_SETPIPE_SZ, 1 << 20);  // as far as drun would make it grow
    EXPECT_GT(fill_pipe(fd(), std::string(4096, 'x')), 0U);
  }
  // The end to write to.
  [[nodiscard]] int fd() const { return writer_.get(); }

 private:
  FileDescriptor reader_;
  FileDescriptor writer_;
};

}  // namespace drun::test
