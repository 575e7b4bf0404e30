// Where the status page listens.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"

namespace drun::launcher {

struct PageSockets {
  std::vector<FileDescriptor> sockets;  // they listen
  std::string place;                    // for the user: "http://127.0.0.1:8080/", "unix:/tmp/x"
};

// `address`: numeric or "localhost", so nothing is looked up; an empty host is every interface.
[[nodiscard]] Result<PageSockets> listen_at(const Endpoint& address);

// At a socket in a folder, for this user alone. One that a process has left behind is replaced. May
// hang with the file system.
[[nodiscard]] Result<PageSockets> listen_at(const std::string& path);

// Removes it, once it is closed; not one that another process listens at by now. May hang likewise.
void remove_socket(const std::string& path);

// The longest path of a socket.
[[nodiscard]] std::size_t longest_socket_path();

}  // namespace drun::launcher
