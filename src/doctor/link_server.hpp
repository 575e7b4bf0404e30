// The other end of the tests between nodes: answers and takes bytes of those that know a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"

namespace drun::doctor {

inline constexpr std::size_t kTokenSize = 32;  // bytes
// Behind the token, what the connection is for:
inline constexpr char kLinkEcho = 'E';  // each byte is answered with the time, see kStampSize
inline constexpr char kLinkSink = 'S';  // all is taken; at its end one byte is the answer
// Of the clock of the server: microseconds since 1970, big-endian.
inline constexpr std::size_t kStampSize = 8;

[[nodiscard]] std::int64_t wall_clock_us();

// Each connection has a thread; a connection that says nothing for ten seconds is closed.
class LinkServer {
 public:
  // Listens on all addresses, at a port that the kernel chooses. Throws std::system_error.
  explicit LinkServer(std::string token);
  LinkServer(const LinkServer&) = delete;
  LinkServer& operator=(const LinkServer&) = delete;
  ~LinkServer();  // ends all connections

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void accept_all();

  const std::string token_;
  FileDescriptor listener_;
  FileDescriptor stop_;  // eventfd
  std::uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace drun::doctor
