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

#include "base/pipe.hpp"

namespace drun {

template <typename T>
class Mailbox {
 public:
  Mailbox() { ::fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK); }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  ~Mailbox() {
    while (receive() != nullptr) {
    }
  }

  // Any thread. A write of eight bytes to a pipe is atomic.
  void post(std::unique_ptr<T> message) {
    T* raw = message.release();
    while (::write(pipe_.write.get(), static_cast<const void*>(&raw), sizeof raw) < 0) {
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
      const auto n = ::read(pipe_.read.get(), static_cast<void*>(&raw), sizeof raw);
      if (n == static_cast<ssize_t>(sizeof raw)) return std::unique_ptr<T>(raw);
      if (n < 0 && errno == EINTR) continue;
      return nullptr;
    }
  }

  // Readable while a message is waiting.
  [[nodiscard]] int fd() const { return pipe_.read.get(); }

 private:
  Pipe pipe_ = make_pipe("make a mailbox");
};

}  // namespace drun
