// A socket of this host, in Linux's abstract namespace, at which callers are let in one by one.
#pragma once

#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class LocalDoor {
 public:
  using Serve = std::function<void(asio::local::stream_protocol::socket caller)>;

  explicit LocalDoor(asio::io_context& io) : acceptor_(io), pause_(io) {}

  // Everybody may call: `serve` has to look who it is. An error: nobody is let in.
  [[nodiscard]] asio::error_code open(const std::string& name, Serve serve);
  void close();

 private:
  void wait();

  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  Serve serve_;
};

}  // namespace drun::launcher
