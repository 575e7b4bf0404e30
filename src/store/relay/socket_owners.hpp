// Whose the other end of a connection within this host is. The kernel is asked for that one socket
// (sock_diag): /proc/net/tcp says the same, but lists all sockets of the host each time, so it is
// read only where the kernel takes no questions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/socket_address.hpp"

namespace drun::store {

struct SocketOwner {
  uid_t user = 0;  // who made the socket; if no process has it any more it may be called root's
  bool is_open = true;  // a process has it

  bool operator==(const SocketOwner&) const = default;
};

class SocketOwners {
 public:
  SocketOwners();

  // Of the socket that `accepted` is connected to. Nullopt: it is not on this host, or is gone.
  [[nodiscard]] std::optional<SocketOwner> of_peer(int accepted);

 private:
  FileDescriptor kernel_;  // invalid: it takes no questions
};

// Of the text of /proc/net/tcp or /proc/net/tcp6: whose socket is at `local`, connected to
// `remote`.
[[nodiscard]] std::optional<SocketOwner> owner_in_table(std::string_view table,
                                                        const SocketAddress& local,
                                                        const SocketAddress& remote);

}  // namespace drun::store
