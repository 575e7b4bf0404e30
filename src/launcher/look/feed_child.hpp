// Gives a program its input within a limit.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "base/poll_until.hpp"

namespace drun::launcher {

// False: not all of it was taken before the deadline. `fd` does not block from then on.
[[nodiscard]] inline bool feed(int fd, std::string_view text,
                               std::chrono::steady_clock::time_point deadline) {
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  while (!text.empty() && await_ready(fd, POLLOUT, deadline)) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return text.empty();
}

}  // namespace drun::launcher
