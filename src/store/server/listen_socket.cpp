#include "store/server/listen_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace drun::store {
namespace {

// A peer whose host has vanished is noticed after about two minutes.
constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveIntervalSeconds = 15;
constexpr int kKeepAliveProbes = 4;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

void set_option(int fd, int level, int option, int value) {
  // Each of these only improves a connection; a kernel without one serves as well.
  (void)::setsockopt(fd, level, option, &value, sizeof value);
}

bool try_bind(int fd, const sockaddr* address, socklen_t size) {
  return ::bind(fd, address, size) == 0;
}

// SO_REUSEADDR lets two sockets that do not listen yet share a port; without it a port in TIME_WAIT
// is refused. So it is set only if the port seems to be taken.
Result<FileDescriptor> bind_address(const addrinfo& address, const std::string& what) {
  FileDescriptor fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::from_errno(errno, "open a socket for " + what);
  if (address.ai_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(address.ai_addr);
    set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY,
               IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) ? 0 : 1);
  }
  if (try_bind(fd.get(), address.ai_addr, address.ai_addrlen)) return fd;
  if (errno == EADDRINUSE) {
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (try_bind(fd.get(), address.ai_addr, address.ai_addrlen)) return fd;
  }
  return Error::from_errno(errno, "bind " + what);
}

std::uint16_t port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void set_port(addrinfo& address, std::uint16_t port) {
  if (address.ai_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_port = htons(port);
  else if (address.ai_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_port = htons(port);
}

Result<std::vector<FileDescriptor>> bind_wildcard(const Endpoint& endpoint) {
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  any6.sin6_port = htons(endpoint.port);
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_addr.s_addr = htonl(INADDR_ANY);
  any4.sin_port = htons(endpoint.port);
  addrinfo address{};
  address.ai_family = AF_INET6;
  address.ai_addr = reinterpret_cast<sockaddr*>(&any6);
  address.ai_addrlen = sizeof any6;
  const std::string what = "port " + std::to_string(endpoint.port);
  Result<FileDescriptor> bound = bind_address(address, what);
  if (!bound && bound.error().code() != std::errc::address_in_use) {
    address.ai_family = AF_INET;
    address.ai_addr = reinterpret_cast<sockaddr*>(&any4);
    address.ai_addrlen = sizeof any4;
    bound = bind_address(address, what);
  }
  if (!bound) return bound.error();
  std::vector<FileDescriptor> sockets;
  sockets.push_back(std::move(bound).value());
  return sockets;
}

}  // namespace

Result<std::vector<FileDescriptor>> bind_endpoint(const Endpoint& endpoint) {
  if (endpoint.host.empty()) return bind_wildcard(endpoint);

  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port_text = std::to_string(endpoint.port);
  const int failure = ::getaddrinfo(endpoint.host.c_str(), port_text.c_str(), &hints, &found);
  if (failure != 0) {
    const std::string cause =
        failure == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(failure);
    return drun::Error(std::make_error_code(std::errc::address_not_available),
                       "resolve " + endpoint.host + ": " + cause);
  }
  const AddressList addresses(found, &::freeaddrinfo);

  std::vector<FileDescriptor> sockets;
  std::optional<drun::Error> first_error;
  std::uint16_t port = endpoint.port;
  for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    set_port(*address, port);
    Result<FileDescriptor> bound = bind_address(*address, to_string(endpoint));
    if (!bound) {
      // A name may also have addresses that are not this machine's; a port that somebody else has
      // on one of them would send some clients there.
      if (bound.error().code() == std::errc::address_in_use) return bound.error();
      if (!first_error) first_error = bound.error();
      continue;
    }
    if (port == 0) {
      const Result<Endpoint> local = local_endpoint(bound->get());
      if (!local) return local.error();
      port = local.value().port;
    }
    sockets.push_back(std::move(bound).value());
  }
  if (sockets.empty()) return *first_error;
  return sockets;
}

Status start_listening(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  if (::listen(fd, INT_MAX) == 0) {
    // Nobody can share the port any more. The accepted sockets inherit this: a server that is
    // started again at once may bind the port although clients still hold their ends of the old
    // connections.
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    return Done{};
  }
  const int error = errno;
  const Result<Endpoint> local = local_endpoint(fd);
  return Error::from_errno(error, "listen on " + (local ? to_string(local.value()) : "a socket"));
}

Result<Endpoint> local_endpoint(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return Error::from_errno(errno, "read the address of a socket");
  char host[NI_MAXHOST];
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return Error::from_errno(EAFNOSUPPORT, "read the address of a socket");
  return Endpoint{host, port_of(address)};
}

}  // namespace drun::store
