#include "store/client/stream_connection.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <asio/post.hpp>

namespace drun::store {
namespace {

// So that little is kept twice.
constexpr std::size_t kEncryptedAtOnce = 64 * 1024;

}  // namespace

void StreamConnection::schedule() {
  if (pumping_ || std::exchange(scheduled_, true)) return;
  asio::post(io_, [self = shared_from_this()] {
    self->scheduled_ = false;
    self->pump();
  });
}

void StreamConnection::abandon() {
  abandoned_ = true;
  dialer_.reset();
  close();
  timer_.cancel();
}

void StreamConnection::pump() {
  pumping_ = true;
  try {
    while (!abandoned_ && do_round()) {
    }
  } catch (...) {  // a caller's callback: the connection goes on with the next call
    pumping_ = false;
    throw;
  }
  pumping_ = false;
  if (!abandoned_) arm_timer();
}

void StreamConnection::dial(const Endpoint& endpoint, std::size_t first) {
  dialer_.emplace(
      io_, endpoint,
      [this](Result<FileDescriptor> socket) {
        // The dialer calls nobody after its own end, which comes before the end of this. But its
        // caller may drop the last reference to this.
        const auto self = shared_from_this();
        on_dialed(std::move(socket));
      },
      first);
}

void StreamConnection::adopt(FileDescriptor socket) {
  socket_.assign(socket.release());
  if (tls_context_ != nullptr)
    tls_ = std::make_unique<secure::TlsEngine>(tls_context_, secure::TlsEngine::Role::Client);
  ++number_;
  await_readable();
}

void StreamConnection::close() {
  ++number_;
  std::error_code ignored;
  socket_.close(ignored);
  tls_.reset();
  awaits_writable_ = false;
}

void StreamConnection::broken(int error) {
  close();
  on_broken(error);
}

void StreamConnection::on_unproven(secure::TlsEngine::Failure /*failure*/) {
  on_broken(EPROTO);
}

void StreamConnection::flush() {
  if (tls_) return flush_secure();
  while (is_open() && is_wanted()) {
    const std::string_view bytes = output();
    if (bytes.empty()) return;
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      on_sent(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return await_writable();
    } else if (errno != EINTR) {
      broken(errno);
    }
  }
}

void StreamConnection::flush_secure() {
  while (is_open() && is_wanted()) {
    std::string& bytes = tls_->output();
    if (bytes.empty()) {
      const std::string_view next =
          tls_->is_open() ? output().substr(0, kEncryptedAtOnce) : std::string_view();
      if (next.empty()) return;
      tls_->send(next);
      on_sent(next.size());
      continue;
    }
    const ssize_t n = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.erase(0, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return await_writable();
    } else if (errno != EINTR) {
      broken(errno);
    }
  }
}

void StreamConnection::take(std::string_view bytes) {
  if (!tls_) return on_received(bytes);
  plain_.clear();
  tls_->receive(bytes, plain_);
  const auto state = tls_->state();
  if (!plain_.empty()) on_received(plain_);
  if (!is_open()) return;
  if (state == secure::TlsEngine::State::Ended) return broken(0);
  if (state != secure::TlsEngine::State::Failed) return;
  const secure::TlsEngine::Failure failure = tls_->failure();
  // The other side hears why, if that goes at once.
  const std::string& last = tls_->output();
  if (!last.empty()) (void)!::send(fd(), last.data(), last.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  close();
  on_unproven(failure);
}

void StreamConnection::read_all() {
  while (is_open() && is_wanted()) {
    const ssize_t n = ::recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n > 0) {
      take({buffer_.data(), static_cast<std::size_t>(n)});
      if (static_cast<std::size_t>(n) < buffer_.size()) return;
    } else if (n == 0) {
      broken(0);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      broken(errno);
    }
  }
}

void StreamConnection::await_readable() {
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [self = shared_from_this(), number = number_](std::error_code error) {
                       if (error || self->abandoned_ || number != self->number_) return;
                       self->read_all();
                       if (self->is_open() && self->is_wanted()) self->await_readable();
                       self->pump();
                     });
}

void StreamConnection::await_writable() {
  if (std::exchange(awaits_writable_, true)) return;
  socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                     [self = shared_from_this(), number = number_](std::error_code error) {
                       if (number != self->number_) return;
                       self->awaits_writable_ = false;
                       if (!error && !self->abandoned_) self->pump();
                     });
}

void StreamConnection::arm_timer() {
  const auto deadline = next_deadline();
  if (deadline == armed_) return;
  armed_ = deadline;
  timer_.cancel();
  if (!deadline) return;
  timer_.expires_at(*deadline);
  timer_.async_wait([self = shared_from_this()](std::error_code error) {
    if (error || self->abandoned_) return;
    self->armed_.reset();
    // What came while this program did not run is heard before anything is judged to be late.
    self->read_all();
    self->on_time(Clock::now());
    self->pump();
  });
}

}  // namespace drun::store
