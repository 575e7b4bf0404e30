// Endpoint to socket addresses. Numeric hosts and "localhost" need no look-up and no thread; any
// other name is looked up in a thread of its own, because the C library's look-up has no time limit
// and cannot be interrupted.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "base/mailbox.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::store {

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

using Addresses = std::vector<SocketAddress>;

// The addresses of a numeric host (IPv4, IPv6 with or without a %scope) or of "localhost"; empty:
// the name must be looked up.
[[nodiscard]] Addresses literal_addresses(const Endpoint& endpoint);

// Where a look-up's answer arrives: exactly one message, unless the program ends first. An error is
// the bare cause.
using LookUp = std::shared_ptr<Mailbox<Result<Addresses>>>;

// Returns at once. Dropping the result abandons the look-up; its thread ends by itself.
[[nodiscard]] LookUp start_look_up(const Endpoint& endpoint);

// The same error with the name in it.
[[nodiscard]] Error look_up_failure(const Endpoint& endpoint, const Error& cause);

// The addresses of the endpoint, literal or looked up; Errc::Timeout at the deadline. Blocks.
[[nodiscard]] Result<Addresses> resolve(const Endpoint& endpoint,
                                        std::chrono::steady_clock::time_point deadline);

// Numeric host and port; an IPv4-mapped address as plain IPv4. An empty one has an empty host.
[[nodiscard]] Endpoint to_endpoint(const SocketAddress& address);

// The local end of a connected socket, and the other one; empty if it has none, which errno says.
[[nodiscard]] SocketAddress local_address_of(int socket);
[[nodiscard]] SocketAddress peer_address_of(int socket);

}  // namespace drun::store
