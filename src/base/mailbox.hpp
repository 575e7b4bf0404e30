// Hands values from one thread to one that sleeps in poll or epoll: a pipe that carries owning
// pointers. Neither side takes a lock. post() may block when 8,000 values are waiting; receive()
// never does.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "base/file_descriptor.hpp"

namespace drun {

template <typename T>
class Mailbox {
 public:
  Mailbox() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe2");
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    ::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    while (receive() != nullptr) {
    }
  }

  // Any thread. A write of eight bytes to a pipe is atomic.
  void post(std::unique_ptr<T> message) {
    T* raw = message.release();
    while (::write(write_end_.get(), static_cast<const void*>(&raw), sizeof raw) < 0) {
      if (errno != EINTR) {
        delete raw;
        throw std::system_error(errno, std::generic_category(), "write to a mailbox");
      }
    }
  }

  // The receiving thread only: the next message, or null when there is none now.
  [[nodiscard]] std::unique_ptr<T> receive() {
    T* raw = nullptr;
    for (;;) {
      const auto n = ::read(read_end_.get(), static_cast<void*>(&raw), sizeof raw);
      if (n == static_cast<ssize_t>(sizeof raw)) return std::unique_ptr<T>(raw);
      if (n < 0 && errno == EINTR) continue;
      return nullptr;
    }
  }

  // Readable while a message is waiting.
  [[nodiscard]] int fd() const { return read_end_.get(); }

 private:
  FileDescriptor read_end_;
  FileDescriptor write_end_;
};

}  // namespace drun
