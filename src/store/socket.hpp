// One TCP connection with blocking calls that end at a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "drun/base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "store/resolve.hpp"

namespace drun::store {

using SteadyTime = std::chrono::steady_clock::time_point;

// Until `fd` is ready for `events` (POLLIN, POLLOUT); timed_out at the deadline. A deadline in the
// past looks once.
[[nodiscard]] Status wait_ready(int fd, short events, SteadyTime deadline);

// A non-blocking, close-on-exec socket with TCP_NODELAY that is connecting or connected.
// Connecting is done when the socket is writable; connect_error() says how it went.
[[nodiscard]] Result<FileDescriptor> begin_connect(const SocketAddress& address);
[[nodiscard]] Status connect_error(int socket);

// begin_connect and its end.
[[nodiscard]] Result<FileDescriptor> connect_to(const SocketAddress& address, SteadyTime deadline);

// All of it.
[[nodiscard]] Status send_all(int socket, std::string_view bytes, SteadyTime deadline);

// Waits for at least one byte; how many were read, at most `size`. connection_reset when the peer
// has closed.
[[nodiscard]] Result<std::size_t> receive_some(int socket, char* buffer, std::size_t size,
                                               SteadyTime deadline);

}  // namespace drun::store
