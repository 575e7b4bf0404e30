// A TCP connection for a thread that may wait: every call ends by its deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun {

// What a name means here, as numbers; empty: nothing. May ask a name server, without any limit.
[[nodiscard]] std::vector<std::string> look_up(const std::string& host);

// A non-blocking, close-on-exec socket that is connecting or connected. Waits for nothing.
[[nodiscard]] Result<FileDescriptor> dial(const SocketAddress& address);
// The same; the host is a numeric address: no name is looked up.
[[nodiscard]] Result<FileDescriptor> begin_connect(const Endpoint& place);
// How that went, once the socket is writable.
[[nodiscard]] Status connect_error(int socket);
// Until it stands, or why it does not.
[[nodiscard]] Status end_connect(int socket, std::chrono::steady_clock::time_point deadline);

[[nodiscard]] Status send_all(int socket, std::string_view bytes,
                              std::chrono::steady_clock::time_point deadline);
// Exactly so many bytes.
[[nodiscard]] Status receive_all(int socket, char* to, std::size_t size,
                                 std::chrono::steady_clock::time_point deadline);

}  // namespace drun
