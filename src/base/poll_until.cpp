#include "base/poll_until.hpp"

#include <cerrno>

#include "base/deadline.hpp"

namespace drun {

int poll_until(std::span<pollfd> entries, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = deadline == kNoDeadline ? -1 : poll_limit(time_left(deadline));
    const int ready = ::poll(entries.data(), entries.size(), left);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return ready;
    // A wait can be longer than poll() takes.
    if (std::chrono::steady_clock::now() >= deadline) return 0;
  }
}

bool await_ready(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  pollfd entry{fd, events, 0};
  return poll_until({&entry, 1}, deadline) > 0;
}

}  // namespace drun
