#include "support/scripted_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace drun::test {

std::string ScriptedConnection::read(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t n = ::recv(fd_, bytes.data() + have, count - have, 0);
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

void ScriptedConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void ScriptedConnection::wait_for_close() {
  char byte;
  while (::recv(fd_, &byte, 1, 0) > 0) {
  }
}

ScriptedPeer::ScriptedPeer(Script script, std::uint16_t port) : script_(std::move(script)) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "listen");
  }
  endpoint_ = {"127.0.0.1", ntohs(address.sin_port)};
  thread_ = std::thread([this] { serve(); });
}

ScriptedPeer::~ScriptedPeer() {
  over_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  if (const int fd = current_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
  thread_.join();
}

void ScriptedPeer::serve() {
  for (;;) {
    FileDescriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) return;
    current_ = accepted.get();
    if (over_) return;
    ScriptedConnection connection(accepted.get(), connections_++);
    script_(connection);
    current_ = -1;
  }
}

}  // namespace drun::test
