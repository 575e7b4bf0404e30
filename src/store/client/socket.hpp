// One TCP connection with blocking calls that end at a deadline: as base/tcp_calls.hpp, but with
// the errors that the clients of a store tell apart.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "store/client/resolve.hpp"

namespace drun::store {

using SteadyTime = std::chrono::steady_clock::time_point;

// What errno says of a connection, without what was attempted; Errc::Closed if the peer closed it.
[[nodiscard]] Error network_error(int error);

// Until `fd` is ready for `events` (POLLIN, POLLOUT); timed_out at the deadline. A deadline in the
// past looks once.
[[nodiscard]] Status wait_ready(int fd, short events, SteadyTime deadline);

// A non-blocking, close-on-exec socket with TCP_NODELAY that is connecting or connected.
// Connecting is done when the socket is writable; connect_error() says how it went.
[[nodiscard]] Result<FileDescriptor> begin_connect(const SocketAddress& address);
[[nodiscard]] Status connect_error(int socket);

// begin_connect and its end.
[[nodiscard]] Result<FileDescriptor> connect_to(const SocketAddress& address, SteadyTime deadline);

// Waits until it can send; how many bytes went, at least one. Precondition: not empty.
[[nodiscard]] Result<std::size_t> send_some(int socket, std::string_view bytes,
                                            SteadyTime deadline);

// All of it.
[[nodiscard]] Status send_all(int socket, std::string_view bytes, SteadyTime deadline);

// Waits for at least one byte; how many were read, at most `size`. connection_reset when the peer
// has closed.
[[nodiscard]] Result<std::size_t> receive_some(int socket, char* buffer, std::size_t size,
                                               SteadyTime deadline);

}  // namespace drun::store
