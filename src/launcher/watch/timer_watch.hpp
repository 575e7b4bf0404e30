// Serves the timers of torch.distributed.elastic.timer (TORCHELASTIC_ENABLE_FILE_TIMER=1) in the
// agent's loop: a pipe that workers open by its path.
#pragma once

#include <array>
#include <functional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_descriptor.hpp"
#include "hang/file_timers.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class TimerWatch {
 public:
  using OnExpired = std::function<void(const hang::FileTimers::Expired&)>;

  // Both are called from the loop: whether workers run, and for each timer that is over then.
  // Throws std::system_error.
  TimerWatch(asio::io_context& io, std::function<bool()> running, OnExpired on_expired);

  // For TORCHELASTIC_TIMER_FILE. No file system knows it, so nothing is left behind.
  [[nodiscard]] const std::string& path() const { return path_; }
  void cancel();

 private:
  void read();
  void look();

  const std::function<bool()> running_;
  const OnExpired on_expired_;
  hang::FileTimers timers_;
  asio::posix::stream_descriptor in_;
  FileDescriptor out_;  // what workers open; it also keeps the pipe from ending
  std::string path_;
  std::array<char, 16'384> buffer_;
  DeadlineTimer timer_;
};

}  // namespace drun::launcher
