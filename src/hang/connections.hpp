// The TCP connections of this network namespace, and how many bytes each has moved. Asks the kernel
// once, when the first is asked for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "drun/base/endpoint.hpp"

namespace drun::hang {

class Connections {
 public:
  // Those from or to `left_out` do not count; 0: all do.
  explicit Connections(std::uint16_t left_out) : left_out_(left_out) {}

  // Of an open file by its link in /proc/PID/fd, "socket:[4711]"; 0 if it is no such connection.
  [[nodiscard]] std::uint64_t bytes_of(std::string_view file);
  // Who is at the other end: "10.0.0.1:29500"; empty: it is no such connection.
  [[nodiscard]] std::string peer_of(std::string_view file);
  // It leads to somebody, whom a listening socket does not have yet.
  [[nodiscard]] bool is_connection(std::string_view file);
  // Of a socket of this machine alone (AF_UNIX), what the other end is called: "socket:[4712]";
  // empty: it is none, or has none.
  [[nodiscard]] std::string other_end_of(std::string_view file);
  // The kernel has told of them.
  [[nodiscard]] bool known();

 private:
  struct Connection {
    std::uint64_t bytes = 0;  // both ways
    std::string peer;
  };

  void ask();
  void ask(std::uint8_t family);
  void ask_for_local_ones();
  [[nodiscard]] const Connection* find(std::string_view file);

  std::uint16_t left_out_;
  bool asked_ = false;
  bool known_ = false;
  std::unordered_map<std::uint64_t, Connection> by_inode_;
  bool asked_for_local_ones_ = false;
  std::unordered_map<std::uint64_t, std::uint64_t> other_ends_;  // both by inode
};

// Whose process listens for TCP at this numeric address of this machine; nullopt: nobody's, or the
// kernel does not tell.
[[nodiscard]] std::optional<uid_t> user_listening_at(const Endpoint& place);

}  // namespace drun::hang
