#include "base/bound_port.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace drun {
namespace {

// errno, or 0.
template <typename Address>
int bind_error(const FileDescriptor& socket, const Address& address) {
  if (!socket) return errno;
  const auto* const place = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(socket.get(), place, sizeof address) == 0 ? 0 : errno;
}

FileDescriptor none(int error) {
  errno = error;
  return {};
}

}  // namespace

FileDescriptor bind_everywhere(std::uint16_t port) {
  FileDescriptor v6(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int off = 0;
  if (v6) ::setsockopt(v6.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(port);
  int error = bind_error(v6, any6);
  if (error == 0) return v6;
  // Taken on either family is taken: IPv4 alone is for machines without IPv6.
  if (error == EADDRINUSE || error == EACCES) return none(error);
  FileDescriptor v4(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(port);
  error = bind_error(v4, any4);
  return error == 0 ? std::move(v4) : none(error);
}

std::uint16_t bound_port(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return 0;
}

}  // namespace drun
