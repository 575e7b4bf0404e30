// A place of the loopback interface where connections neither come to stand nor are refused, and
// this process's own connections.
#pragma once

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace drun::test {

// How many of this process's TCP sockets are in this state (TCP_SYN_SENT) and as `wanted` says.
inline int own_sockets(int state, const std::function<bool(int socket)>& wanted = {}) {
  int found = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> descriptors(::opendir("/proc/self/fd"), ::closedir);
  while (const dirent* entry = ::readdir(descriptors.get())) {
    const int fd = std::atoi(entry->d_name);
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == state &&
        (!wanted || wanted(fd)))
      ++found;
  }
  return found;
}

// Those that have come to stand.
inline int connections_to(const Endpoint& place) {
  return own_sockets(TCP_ESTABLISHED,
                     [&](int socket) { return to_endpoint(peer_address_of(socket)) == place; });
}
inline int connections_at(const Endpoint& place) {
  return own_sockets(TCP_ESTABLISHED,
                     [&](int socket) { return to_endpoint(local_address_of(socket)) == place; });
}

// A socket that listens there and accepts nobody, and those that its full queue keeps waiting.
class SilentPlace {
 public:
  // Port 0: any.
  explicit SilentPlace(const Endpoint& endpoint) {
    SocketAddress place = numeric_address(endpoint);
    const int family = place.storage.ss_family;
    listener_.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(listener_.get(), place.get(), place.length) != 0) return;
    if (::listen(listener_.get(), 0) != 0) return;
    place = local_address_of(listener_.get());
    endpoint_ = to_endpoint(place);
    for (int i = 0; i < 4; ++i) {
      queue_.emplace_back(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(queue_.back().get(), place.get(), place.length);
    }
    waiting_ = own_sockets(TCP_SYN_SENT);
  }

  [[nodiscard]] bool is_silent() const { return waiting_ > 0; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // How many sockets of this process have begun to connect since, there or elsewhere.
  [[nodiscard]] int callers() const { return own_sockets(TCP_SYN_SENT) - waiting_; }

 private:
  FileDescriptor listener_;
  std::vector<FileDescriptor> queue_;
  Endpoint endpoint_;
  int waiting_ = 0;
};

}  // namespace drun::test
