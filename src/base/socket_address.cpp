#include "base/socket_address.hpp"

#include <netdb.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/whole_number.hpp"

namespace drun {
namespace {

// `call` is getsockname or getpeername.
SocketAddress address_by(int (*call)(int, sockaddr*, socklen_t*), int socket) {
  SocketAddress address;
  address.length = sizeof address.storage;
  if (call(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address;
}

}  // namespace

SocketAddress numeric_address(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list) !=
      0)
    return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  SocketAddress address;
  std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
  address.length = list->ai_addrlen;
  return address;
}

Endpoint to_endpoint(const SocketAddress& address) {
  char host[NI_MAXHOST] = {};
  char port[NI_MAXSERV] = {};
  if (::getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {};
  }
  std::string name = host;
  if (name.starts_with("::ffff:")) name.erase(0, 7);  // an IPv4 connection of a dual-stack socket
  return {std::move(name), whole_number<std::uint16_t>(port).value_or(0)};
}

SocketAddress local_address_of(int socket) {
  return address_by(::getsockname, socket);
}

SocketAddress peer_address_of(int socket) {
  return address_by(::getpeername, socket);
}

}  // namespace drun
