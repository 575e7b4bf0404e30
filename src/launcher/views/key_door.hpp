// Gives the key of the job's connections to drunctl, where drun has made the token and nobody else
// knows it: on this host, to the same user and root alone. Behind it stands where the store is.
#pragma once

#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>

#include "launcher/views/local_door.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class KeyDoor {
 public:
  explicit KeyDoor(asio::io_context& io) : door_(io) {}
  KeyDoor(const KeyDoor&) = delete;
  KeyDoor& operator=(const KeyDoor&) = delete;
  ~KeyDoor();

  // A system that refuses the socket costs nothing but the answers. Of a key that is moved there is
  // no copy left.
  void open(const std::string& job, std::string key, std::function<std::string()> place);
  void close() { door_.close(); }

 private:
  void serve(asio::local::stream_protocol::socket& caller) const;

  LocalDoor door_;
  std::string key_;
  std::function<std::string()> place_;
};

}  // namespace drun::launcher
