// Sockets to listen on: bound here, listening later.
#pragma once

#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::store {

// Binds every address of the endpoint's host that is this machine's, all to one port; port 0: any
// free one. An empty host is all interfaces, IPv6 and IPv4 by one socket, or IPv4 alone if there is
// no IPv6. The error names the endpoint and the cause.
[[nodiscard]] Result<std::vector<FileDescriptor>> bind_endpoint(const Endpoint& endpoint);

// With the kernel's longest backlog. Accepted connections inherit no-delay and keep-alive.
[[nodiscard]] Status start_listening(int fd);

// The numeric local address.
[[nodiscard]] Result<Endpoint> local_endpoint(int fd);

}  // namespace drun::store
