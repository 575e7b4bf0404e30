#include "store/client/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/poll_until.hpp"
#include "base/tcp_calls.hpp"
#include "drun/store/errors.hpp"

namespace drun::store {

Error network_error(int error) {
  if (error == ECONNRESET || error == EPIPE) {
    return Error(Errc::Closed, "the peer closed the connection");
  }
  const std::error_code code(error, std::generic_category());
  return Error(code, code.message());
}

Status wait_ready(int fd, short events, SteadyTime deadline) {
  pollfd entry{fd, events, 0};
  const int ready = poll_until({&entry, 1}, deadline);
  if (ready < 0) return network_error(errno);
  if (ready == 0) return Error(Errc::Timeout, "timed out");
  return Done{};
}

Result<FileDescriptor> begin_connect(const SocketAddress& address) {
  auto socket = dial(address);
  if (!socket) return network_error(socket.error().code().value());
  const int on = 1;
  ::setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket->get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return socket;
}

Status connect_error(int socket) {
  const Status connected = drun::connect_error(socket);
  if (!connected) return network_error(connected.error().code().value());
  return Done{};
}

Result<FileDescriptor> connect_to(const SocketAddress& address, SteadyTime deadline) {
  auto socket = begin_connect(address);
  if (!socket) return socket;
  if (const Status ready = wait_ready(socket->get(), POLLOUT, deadline); !ready) {
    return ready.error();
  }
  if (const Status connected = connect_error(socket->get()); !connected) return connected.error();
  return socket;
}

Result<std::size_t> send_some(int socket, std::string_view bytes, SteadyTime deadline) {
  for (;;) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN) {
      if (const Status ready = wait_ready(socket, POLLOUT, deadline); !ready) return ready.error();
    } else if (errno != EINTR) {
      return network_error(errno);
    }
  }
}

Status send_all(int socket, std::string_view bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    const auto sent = send_some(socket, bytes, deadline);
    if (!sent) return sent.error();
    bytes.remove_prefix(*sent);
  }
  return Done{};
}

Result<std::size_t> receive_some(int socket, char* buffer, std::size_t size, SteadyTime deadline) {
  for (;;) {
    if (const Status ready = wait_ready(socket, POLLIN, deadline); !ready) return ready.error();
    const ssize_t n = ::recv(socket, buffer, size, 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) {
      return Error(Errc::Closed, "the peer closed the connection");
    }
    if (errno != EAGAIN && errno != EINTR) return network_error(errno);
  }
}

}  // namespace drun::store
