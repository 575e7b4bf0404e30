#include "base/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/poll_until.hpp"

namespace drun {

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
    if (::fcntl(stream, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) < 0)
      throw std::system_error(errno, std::generic_category(), "open /dev/null");
}

Status write_standard_output(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0)
    return Error::from_errno(errno, "write standard output");
  return Done{};
}

std::string read_standard_input_line(std::size_t most,
                                     std::chrono::steady_clock::time_point deadline) {
  std::string line;
  std::array<char, 16'384> bytes;
  while (!line.ends_with('\n') && line.size() < most &&
         await_ready(STDIN_FILENO, POLLIN, deadline)) {
    const auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got == 0 || (got < 0 && errno != EINTR)) break;
    if (got > 0) line.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return line;
}

}  // namespace drun
