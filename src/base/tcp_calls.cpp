#include "base/tcp_calls.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/poll_until.hpp"

namespace drun {
namespace {

Error error_of(int error) {
  const std::error_code code(error, std::generic_category());
  return {code, code.message()};
}

std::optional<std::pair<sockaddr_storage, socklen_t>> address_of(const Endpoint& place) {
  sockaddr_storage storage{};
  auto* const four = reinterpret_cast<sockaddr_in*>(&storage);
  if (::inet_pton(AF_INET, place.host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(place.port);
    return std::pair{storage, static_cast<socklen_t>(sizeof *four)};
  }
  auto* const six = reinterpret_cast<sockaddr_in6*>(&storage);
  if (::inet_pton(AF_INET6, place.host.c_str(), &six->sin6_addr) != 1) return std::nullopt;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(place.port);
  return std::pair{storage, static_cast<socklen_t>(sizeof *six)};
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

Result<FileDescriptor> begin_connect(const Endpoint& place) {
  const auto address = address_of(place);
  if (!address) return Error(std::make_error_code(std::errc::invalid_argument), "no address");
  FileDescriptor socket(
      ::socket(address->first.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return error_of(errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address->first),
                address->second) != 0 &&
      errno != EINPROGRESS)
    return error_of(errno);
  return socket;
}

Status end_connect(int socket, std::chrono::steady_clock::time_point deadline) {
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (await_ready(socket, POLLOUT, deadline))
    (void)::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return error_of(error);
  return Done{};
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
