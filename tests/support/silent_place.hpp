// A place of the loopback interface where connections neither come to stand nor are refused, and
// who is on the way to a place.
#pragma once

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace drun::test {

// How many sockets of this machine are in this state (TCP_ESTABLISHED) on their way to this place.
inline int connections_to(const Endpoint& place, unsigned state) {
  const bool six = place.host == "::1";
  std::ifstream table(six ? "/proc/net/tcp6" : "/proc/net/tcp");
  char remote[48];
  std::snprintf(remote, sizeof remote, " %s:%04X %02X ",
                six ? "00000000000000000000000001000000" : "0100007F", unsigned{place.port}, state);
  int found = 0;
  for (std::string line; std::getline(table, line);)
    found += line.find(remote) != std::string::npos ? 1 : 0;
  return found;
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
    own_ = connections_to(endpoint_, TCP_SYN_SENT);
  }

  [[nodiscard]] bool is_silent() const { return own_ > 0; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  // Who else is on the way there.
  [[nodiscard]] int callers() const { return connections_to(endpoint_, TCP_SYN_SENT) - own_; }

 private:
  FileDescriptor listener_;
  std::vector<FileDescriptor> queue_;
  Endpoint endpoint_;
  int own_ = 0;
};

}  // namespace drun::test
