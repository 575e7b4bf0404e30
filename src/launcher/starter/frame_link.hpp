// Frames over two descriptors: one to read, one to write.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "launcher/hosts/edge_wire.hpp"
#include "launcher/starter/link_fsm.hpp"

namespace drun::launcher {

// A side that hears nothing of the other for so long takes it for gone. If the way is cut, the
// starter should be the first to know: it can say so.
inline constexpr std::chrono::seconds kSilenceLimitOfStarter{30};
inline constexpr std::chrono::seconds kSilenceLimitOfEnd{45};
inline constexpr std::chrono::seconds kAliveInterval{5};

// Works in the thread that runs `io`, and must outlive all that waits there: end() it, and let `io`
// run dry.
class FrameLink {
 public:
  struct Calls {
    std::function<void(const hosts::Frame&)> frame;
    // The other side wants a copy of drun: send_file() it.
    std::function<void(const std::string& machine)> wants_copy;
    // Nothing more comes from the other side, or is read of it; once. `given_up`: why this side has
    // ended it; empty: the other one has.
    std::function<void(const std::string& given_up)> closed;
  };
  // `marked`: what comes before kEdgeMark is thrown away.
  FrameLink(asio::io_context& io, FileDescriptor in, FileDescriptor out, bool marked, Calls calls);
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  void start();
  // Bytes as they are, before the first frame.
  void send_bytes(std::string bytes);
  // All of it, behind what was sent, as fast as the other side takes it.
  void send_file(FileDescriptor file);
  void send(const hosts::Frame& frame) { send_bytes(hosts::encode(frame)); }
  // The other side reads to the end of what was sent, then nothing.
  void close_output();
  // Nothing is called any more.
  void end();
  // A frame has come; without a mark nobody waits for one.
  [[nodiscard]] bool greeted() const { return fsm_.greeted(); }
  // What came in place of the mark.
  [[nodiscard]] std::string_view noise() const { return reader_.noise(); }

 private:
  void read();
  void deliver();
  void write();
  void read_file();
  void forget_outbox();
  bool tell(const std::optional<std::string>& given_up);
  void watch();

  asio::posix::stream_descriptor in_;
  asio::posix::stream_descriptor out_;
  asio::steady_timer timer_;
  hosts::FrameReader reader_;
  Calls calls_;
  std::array<char, 64 * 1024> buffer_{};
  std::deque<std::string> outbox_;  // the first is being written
  FileDescriptor file_;             // the rest of it follows
  LinkFsm fsm_;
  bool writing_ = false;
  bool closing_output_ = false;
};

}  // namespace drun::launcher
