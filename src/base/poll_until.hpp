// poll() until a deadline. A signal does not end the wait.
#pragma once

#include <poll.h>

#include <chrono>
#include <span>

namespace drun {

inline constexpr std::chrono::steady_clock::time_point kNoDeadline =
    std::chrono::steady_clock::time_point::max();

// How many of `entries` have something to say, in their `revents`. 0: the deadline has passed; one
// that is over already looks once. -1: errno says what failed.
[[nodiscard]] int poll_until(std::span<pollfd> entries,
                             std::chrono::steady_clock::time_point deadline);

// Until `fd` is ready for `events` (POLLIN, POLLOUT), or will never be. False: at the deadline it
// is not.
bool await_ready(int fd, short events, std::chrono::steady_clock::time_point deadline);

}  // namespace drun
