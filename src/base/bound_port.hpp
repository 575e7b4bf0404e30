// A TCP port that is taken before it is known who will use it.
#pragma once

#include <cstdint>

#include "base/file_descriptor.hpp"

namespace drun {

// A socket that has the port on all addresses of this machine, IPv6 and IPv4, and does not listen.
// 0: any free port. Empty if the port is taken on either, or there is no such socket; errno says
// why.
[[nodiscard]] FileDescriptor bind_everywhere(std::uint16_t port);
// 0: it has none.
[[nodiscard]] std::uint16_t bound_port(int socket);

}  // namespace drun
