// Tells the agent's status to whoever asks on this host and is its user or root. Each caller gets
// one answer and is gone: none can hold anything of the agent's.
#pragma once

#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>

#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class StatusDoor {
 public:
  // `answer` is called from the loop.
  StatusDoor(asio::io_context& io, std::string job, std::function<status::AgentStatus()> answer);

  // A system that refuses the socket costs nothing but the answers.
  void open();
  void close();

 private:
  void wait();
  void serve(asio::local::stream_protocol::socket& caller);

  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer pause_;
  const std::string job_;
  const std::function<status::AgentStatus()> answer_;
};

}  // namespace drun::launcher
