// Endpoint to socket addresses (base/socket_address.hpp). Numeric hosts and "localhost" need no
// look-up and no thread; any other name is looked up in a thread of its own, because the C
// library's look-up has no time limit and cannot be interrupted.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/mailbox.hpp"
#include "base/socket_address.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::store {

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

}  // namespace drun::store
