// A server that does what a test says: listens on a free loopback port and runs a function for each
// connection, one after the other, in a thread of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/file_descriptor.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::test {

// The server's end of one connection. Calls end when the peer closes or the test is over.
class ScriptedConnection {
 public:
  ScriptedConnection(int fd, int number) : fd_(fd), number_(number) {}

  [[nodiscard]] int number() const { return number_; }  // of this connection, from 0
  // Exactly so many bytes, or fewer if the peer closed.
  std::string read(std::size_t count);
  void write(std::string_view bytes);
  void wait_for_close();

 private:
  int fd_;
  int number_;
};

class ScriptedPeer {
 public:
  using Script = std::function<void(ScriptedConnection&)>;

  explicit ScriptedPeer(Script script, std::uint16_t port = 0);
  ~ScriptedPeer();
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve();

  Script script_;
  FileDescriptor listener_;
  Endpoint endpoint_;
  std::atomic<int> connections_{0};
  std::atomic<int> current_{-1};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace drun::test
