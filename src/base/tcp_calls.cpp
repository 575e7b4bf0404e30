#include "base/tcp_calls.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>

#include "base/poll_until.hpp"

namespace drun {
namespace {

Error error_of(int error) {
  const std::error_code code(error, std::generic_category());
  return {code, code.message()};
}

}  // namespace

std::vector<std::string> look_up(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<std::string> result;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return result;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0)
      result.emplace_back(text);
  }
  return result;
}

Result<FileDescriptor> dial(const SocketAddress& address) {
  FileDescriptor socket(
      ::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket) return error_of(errno);
  if (::connect(socket.get(), address.get(), address.length) != 0 && errno != EINPROGRESS &&
      errno != EINTR)
    return error_of(errno);
  return socket;
}

Result<FileDescriptor> begin_connect(const Endpoint& place) {
  const SocketAddress address = numeric_address(place);
  if (address.empty())
    return Error(std::make_error_code(std::errc::invalid_argument), "no address");
  return dial(address);
}

Status connect_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return error_of(error);
  // A port of this host that nobody listens on can connect to itself: both ends are one socket.
  const Endpoint local = to_endpoint(local_address_of(socket));
  const SocketAddress peer = peer_address_of(socket);
  if (peer.empty()) return error_of(errno);
  if (to_endpoint(peer) == local) return error_of(ECONNREFUSED);
  return Done{};
}

Status end_connect(int socket, std::chrono::steady_clock::time_point deadline) {
  if (!await_ready(socket, POLLOUT, deadline)) return error_of(ETIMEDOUT);
  return connect_error(socket);
}

Status send_all(int socket, std::string_view bytes,
                std::chrono::steady_clock::time_point deadline) {
  while (!bytes.empty()) {
    const auto n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return error_of(errno);
    } else if (!await_ready(socket, POLLOUT, deadline)) {
      return error_of(ETIMEDOUT);
    }
  }
  return Done{};
}

Status receive_all(int socket, char* to, std::size_t size,
                   std::chrono::steady_clock::time_point deadline) {
  while (size > 0) {
    const auto n = ::recv(socket, to, size, MSG_DONTWAIT);
    if (n > 0) {
      to += n;
      size -= static_cast<std::size_t>(n);
    } else if (n == 0) {
      return error_of(ECONNRESET);
    } else if (errno != EAGAIN && errno != EINTR) {
      return error_of(errno);
    } else if (!await_ready(socket, POLLIN, deadline)) {
      return error_of(ETIMEDOUT);
    }
  }
  return Done{};
}

}  // namespace drun
