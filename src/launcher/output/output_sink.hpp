// A place that bytes go to and that may stall: drun's own stdout or stderr. Never blocks on a pipe,
// a socket or a terminal, and never changes the descriptor's flags, which others share.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/file_descriptor.hpp"

namespace drun::launcher {

class Sink {
 public:
  enum class State {
    Open,
    Blocked,  // takes nothing now; wait_fd() becomes writable
    Gone      // the reader has left, or the device is full: takes nothing any more
  };

  // `fd` is borrowed and stays open for the life of the sink.
  explicit Sink(int fd);

  // Writes from the front of `parts`. Returns how many bytes were taken.
  std::size_t write(std::span<const iovec> parts);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] int error() const { return error_; }  // errno, when Gone
  // Gone because the other end of the pipe, socket or terminal was closed, which is no error.
  [[nodiscard]] bool reader_left() const;
  // How many of the bytes written its reader has not taken yet; 0 if the system cannot tell. Any
  // thread.
  [[nodiscard]] std::size_t unread() const;
  void unblock() {
    if (state_ == State::Blocked) state_ = State::Open;
  }
  [[nodiscard]] int fd() const { return fd_; }
  // To wait on for room with epoll; -1: a file, never blocked.
  [[nodiscard]] int wait_fd() const { return own_.valid() ? own_.get() : (waits_ ? fd_ : -1); }

 private:
  enum class Way { Plain, Socket, Careful };

  int fd_;
  FileDescriptor own_;  // the same pipe or terminal opened again, non-blocking for us alone
  Way way_ = Way::Plain;
  bool waits_ = false;
  bool pipe_ = false;
  bool grown_ = false;
  State state_ = State::Open;
  int error_ = 0;
};

// Both are the same pipe, terminal, socket or file.
[[nodiscard]] bool same_destination(int first, int second);

}  // namespace drun::launcher
