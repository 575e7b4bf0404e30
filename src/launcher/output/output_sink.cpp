#include "launcher/output/output_sink.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace drun::launcher {
namespace {

constexpr int kPipeSize = 1 << 20;

// A pipe that is writable has room for PIPE_BUF bytes.
ssize_t write_carefully(int fd, const iovec& part) {
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(fd, part.iov_base, std::min<std::size_t>(part.iov_len, PIPE_BUF));
}

}  // namespace

Sink::Sink(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    state_ = State::Gone;
    error_ = errno;
    return;
  }
  if (S_ISSOCK(status.st_mode)) {
    way_ = Way::Socket;
    waits_ = true;
  } else if (S_ISFIFO(status.st_mode) || ::isatty(fd) != 0) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    own_.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    waits_ = true;
    pipe_ = S_ISFIFO(status.st_mode);
    if (!own_) way_ = Way::Careful;
  }
}

std::size_t Sink::write(std::span<const iovec> parts) {
  while (state_ == State::Open) {
    ssize_t n = 0;
    const auto count = std::min<std::size_t>(parts.size(), IOV_MAX);
    if (way_ == Way::Socket) {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(parts.data());
      message.msg_iovlen = count;
      n = ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (way_ == Way::Careful) {
      n = write_carefully(fd_, parts.front());
    } else {
      n = ::writev(own_ ? own_.get() : fd_, parts.data(), static_cast<int>(count));
    }
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {
      state_ = State::Gone;
      error_ = errno;
    } else {
      // A bigger pipe means fewer turns between us and the reader.
      const bool grows = own_ && pipe_ && !std::exchange(grown_, true);
      if (!grows || ::fcntl(own_.get(), F_SETPIPE_SZ, kPipeSize) < 0) state_ = State::Blocked;
    }
  }
  return 0;
}

bool Sink::reader_left() const {
  if (state_ != State::Gone) return false;
  return error_ == EPIPE || error_ == ECONNRESET || (error_ == EIO && waits_);
}

std::size_t Sink::unread() const {
  int count = 0;
  if (!waits_ || ::ioctl(fd_, pipe_ ? FIONREAD : TIOCOUTQ, &count) != 0) return 0;
  return static_cast<std::size_t>(std::max(count, 0));
}

bool same_destination(int first, int second) {
  struct stat a {};
  struct stat b {};
  if (::fstat(first, &a) != 0 || ::fstat(second, &b) != 0) return false;
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev;
}

}  // namespace drun::launcher
