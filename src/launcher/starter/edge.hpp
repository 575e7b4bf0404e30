// The launcher's process for one host (ssh, or what --launcher names) while it runs.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "launcher/hosts/edge_wire.hpp"
#include "launcher/starter/edge_fsm.hpp"
#include "launcher/starter/frame_link.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`, which must run dry before this goes.
class Edge {
 public:
  using Ending = EdgeEnding;
  struct Calls {
    std::function<void(const hosts::Frame&)> frame;
    // It has no drun and wants this one.
    std::function<void(const std::string& machine)> wants_copy;
    // The process is gone, and all that it said has been read; once.
    std::function<void(const Ending&)> ended;
  };
  // Starts `command`. Throws std::system_error if it cannot be started.
  Edge(asio::io_context& io, const std::vector<std::string>& command, Calls calls);
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;
  ~Edge();

  void send_file(FileDescriptor file) { link_->send_file(std::move(file)); }
  void send(const hosts::Frame& frame) { link_->send(frame); }
  // No agent runs there: the drun there ends itself; ended() follows, soon or by force.
  void close();
  void kill();

 private:
  void read_stderr();
  void keep_stderr(std::size_t size);  // of the buffer
  void await_exit();
  void on_exit();
  void act(EdgeFsm::Step step);
  void limit();
  void tell();

  asio::posix::stream_descriptor stderr_;
  asio::posix::stream_descriptor process_;  // a pidfd
  asio::steady_timer limit_;
  std::unique_ptr<FrameLink> link_;
  Calls calls_;
  pid_t pid_ = -1;
  std::array<char, 4096> buffer_{};
  Ending ending_;
  EdgeFsm fsm_;
};

}  // namespace drun::launcher
