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
#include "launcher/starter/frame_link.hpp"

namespace drun::launcher {

// Works in the thread that runs `io`, which must run dry before this goes.
class Edge {
 public:
  struct Ending {
    bool greeted = false;    // a drun there had answered
    int code = 0;            // the launcher's, as a shell gives it
    std::string stderr_end;  // what it said last, as it is
    std::string noise;       // and on its stdout, if no drun has answered
    std::string given_up;    // why it was not waited for; empty: it ended by itself
  };
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
  void look();
  void limit();

  asio::posix::stream_descriptor stderr_;
  asio::posix::stream_descriptor process_;  // a pidfd
  asio::steady_timer limit_;
  std::unique_ptr<FrameLink> link_;
  Calls calls_;
  pid_t pid_ = -1;
  std::array<char, 4096> buffer_{};
  Ending ending_;
  bool streams_closed_ = false;  // nothing more comes from there
  bool exited_ = false;
  bool told_ = false;
};

}  // namespace drun::launcher
