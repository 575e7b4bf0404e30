// An address of a socket as the system has it, and as numbers. No name is looked up here.
#pragma once

#include <sys/socket.h>

#include <string_view>

#include "drun/base/endpoint.hpp"

namespace drun {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] bool empty() const { return length == 0; }
  // As one would hand it on.
  [[nodiscard]] std::string_view bytes() const {
    return {reinterpret_cast<const char*>(&storage), length};
  }
};

// Of a numeric host: IPv4, or IPv6 with or without a %scope. Empty: it is a name.
[[nodiscard]] SocketAddress numeric_address(const Endpoint& endpoint);

// Numeric host and port; an IPv4-mapped address as plain IPv4. An empty one has an empty host.
[[nodiscard]] Endpoint to_endpoint(const SocketAddress& address);

// The local end of a connected socket, and the other one; empty if it has none, which errno says.
[[nodiscard]] SocketAddress local_address_of(int socket);
[[nodiscard]] SocketAddress peer_address_of(int socket);

}  // namespace drun
