// Tells the agent's status, its job's and the stacks of its workers to programs that ask on this
// host and is its user or root. Each caller gets one answer and is gone: none can hold more than a
// descriptor, and that for a while.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>

#include "launcher/views/local_door.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class StatusDoor {
 public:
  // All are called from the loop. `say` is called from there, once, unless it is forgotten.
  using Say = std::function<void(const std::string& text)>;
  struct Answers {
    std::function<status::AgentStatus()> status;
    std::function<void(bool whole_job, bool unwind, Say say)> stacks;
    std::function<void(Say say)> job;
    std::function<void(Say say)> usage;
  };
  StatusDoor(asio::io_context& io, std::string job, Answers answers);

  // A system that refuses the socket costs nothing but the answers.
  void open();
  void close();

 private:
  struct Caller;

  void serve(asio::local::stream_protocol::socket caller);
  // `ask` gets the say to call.
  void serve_later(asio::local::stream_protocol::socket caller,
                   const std::function<void(Say say)>& ask);

  LocalDoor door_;
  const std::string job_;
  const Answers answers_;
  std::vector<std::weak_ptr<Caller>> callers_;  // that wait for a longer answer
};

}  // namespace drun::launcher
