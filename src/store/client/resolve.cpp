#include "store/client/resolve.hpp"

#include <netdb.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/signal_block.hpp"
#include "store/client/socket.hpp"

namespace drun::store {
namespace {

// getaddrinfo's answer, or its error code and errno.
struct Answer {
  Addresses addresses;
  int code = 0;
  int system_error = 0;
};

Answer get_addresses(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Answer answer;
  answer.code =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  answer.system_error = errno;
  if (answer.code != 0) return answer;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    answer.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  return answer;
}

Result<Addresses> look_up(const Endpoint& endpoint) {
  Answer answer = get_addresses(endpoint);
  if (answer.code == 0) return std::move(answer.addresses);
  const std::string why = answer.code == EAI_SYSTEM
                              ? std::generic_category().message(answer.system_error)
                              : ::gai_strerror(answer.code);
  return Error(std::make_error_code(std::errc::host_unreachable), why);
}

}  // namespace

Addresses literal_addresses(const Endpoint& endpoint) {
  if (endpoint.host == "localhost") {
    Addresses both = literal_addresses({"127.0.0.1", endpoint.port});
    const Addresses v6 = literal_addresses({"::1", endpoint.port});
    both.insert(both.end(), v6.begin(), v6.end());
    return both;
  }
  const SocketAddress numeric = numeric_address(endpoint);
  return numeric.empty() ? Addresses{} : Addresses{numeric};
}

LookUp start_look_up(const Endpoint& endpoint) {
  auto answer = std::make_shared<Mailbox<Result<Addresses>>>();  // shared with the thread
  const SignalBlock no_signals;  // they belong to the caller's threads
  try {
    std::thread([answer, endpoint] {
      answer->post(std::make_unique<Result<Addresses>>(look_up(endpoint)));
    }).detach();
  } catch (const std::system_error& error) {
    answer->post(std::make_unique<Result<Addresses>>(
        Error(error.code(), std::string("start a thread for the look-up: ") + error.what())));
  }
  return answer;
}

Error look_up_failure(const Endpoint& endpoint, const Error& cause) {
  return Error(cause.code(), "cannot look up '" + endpoint.host + "': " + cause.what());
}

Result<Addresses> resolve(const Endpoint& endpoint,
                          std::chrono::steady_clock::time_point deadline) {
  Addresses literal = literal_addresses(endpoint);
  if (!literal.empty()) return literal;
  const LookUp look_up = start_look_up(endpoint);
  if (const Status ready = wait_ready(look_up->fd(), POLLIN, deadline); !ready) {
    return Error(ready.error().code(), "no answer to the look-up of '" + endpoint.host + "'");
  }
  Result<Addresses> found = std::move(*look_up->receive());
  if (!found) return look_up_failure(endpoint, found.error());
  return found;
}

}  // namespace drun::store
