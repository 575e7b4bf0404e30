// Gives the key of the job's connections to drunctl, where drun has made the token and nobody else
// knows it: on this host, to the same user and root alone. Behind it stands where the store is.
#pragma once

#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class KeyDoor {
 public:
  explicit KeyDoor(asio::io_context& io) : acceptor_(io), pause_(io) {}
  KeyDoor(const KeyDoor&) = delete;
  KeyDoor& operator=(const KeyDoor&) = delete;
  ~KeyDoor();

  // A system that refuses the socket costs nothing but the answers.
  void open(const std::string& job, const std::string& key, std::function<std::string()> place);
  void close();

 private:
  void wait();
  void serve(asio::local::stream_protocol::socket& caller) const;

  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string key_;
  std::function<std::string()> place_;
};

}  // namespace drun::launcher
