#include "drun/store/control_client.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "store/client/control_machine.hpp"
#include "store/client/dialer.hpp"
#include "store/client/resolve.hpp"

namespace drun::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 65536;

std::string closed_because(int error) {
  return error == 0 || error == ECONNRESET || error == EPIPE
             ? "it closed the connection"
             : std::generic_category().message(error);
}

}  // namespace

// The thin shell around the machine: sockets, the timer, and turns of the loop.
class ControlClient::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, ControlOptions options, Sink sink)
      : io_(io),
        endpoint_(options.endpoint),
        machine_(std::move(options), std::random_device{}()),
        sink_(std::move(sink)),
        socket_(io),
        timer_(io) {}

  ControlMachine& machine() { return machine_; }
  const ControlMachine& machine() const { return machine_; }
  const Endpoint& local_endpoint() const { return local_endpoint_; }

  // What calls have asked for is done in the next turn of the loop, in one write.
  void schedule() {
    if (pumping_ || std::exchange(scheduled_, true)) return;
    asio::post(io_, [self = shared_from_this()] {
      self->scheduled_ = false;
      self->pump();
    });
  }

  void abandon() {
    abandoned_ = true;
    dialer_.reset();
    close_socket();
    timer_.cancel();
  }

 private:
  // Does all that the machine wants; calls the sink. The last thing that a handler does.
  void pump() {
    pumping_ = true;
    while (!abandoned_) {
      follow_connection();
      flush();
      auto events = machine_.take_events();
      if (events.empty() && connection_ == machine_.wanted_connection()) break;
      for (ControlEvent& event : events) {
        sink_(std::move(event));
        if (abandoned_) return;
      }
    }
    pumping_ = false;
    if (!abandoned_) arm_timer();
  }

  void follow_connection() {
    const auto wanted = machine_.wanted_connection();
    if (wanted == connection_) return;
    connection_ = wanted;
    dialer_.reset();
    close_socket();
    if (!wanted) return;
    dialer_.emplace(io_, endpoint_, [this](Result<FileDescriptor> socket) {
      dialed(std::move(socket));  // the dialer calls nobody after its end, which is before mine
    });
  }

  void dialed(Result<FileDescriptor> socket) {
    const auto self = shared_from_this();  // the sink may drop the last reference
    if (socket) {
      local_endpoint_ = local_endpoint_of(socket->get());
      socket_.assign(socket->release());
      outgoing_.clear();
      machine_.on_connected(Clock::now());
      await_readable();
    } else {
      machine_.on_connect_failed(socket.error().what(), Clock::now());
    }
    pump();
  }

  void await_readable() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this(), number = connection_](std::error_code error) {
                         if (error || self->abandoned_ || number != self->connection_) return;
                         self->read_all();
                         if (self->socket_.is_open()) self->await_readable();
                         self->pump();
                       });
  }

  // Gives the machine what has arrived.
  void read_all() {
    std::array<char, kReadBytes> buffer;
    while (socket_.is_open() && connection_ == machine_.wanted_connection()) {
      const ssize_t n = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n > 0) {
        machine_.on_received({buffer.data(), static_cast<std::size_t>(n)}, Clock::now());
        if (static_cast<std::size_t>(n) < buffer.size()) return;
      } else if (n < 0 && errno == EINTR) {
        continue;
      } else if (n < 0 && errno == EAGAIN) {
        return;
      } else {
        machine_.on_disconnected(closed_because(n == 0 ? 0 : errno), Clock::now());
        close_socket();
        return;
      }
    }
  }

  void flush() {
    if (!socket_.is_open() || connection_ != machine_.wanted_connection()) return;
    outgoing_ += machine_.take_output(Clock::now());
    while (!outgoing_.empty()) {
      const ssize_t n = ::send(socket_.native_handle(), outgoing_.data(), outgoing_.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        outgoing_.erase(0, static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        await_writable();
        return;
      } else if (errno != EINTR) {
        machine_.on_disconnected(closed_because(errno), Clock::now());
        close_socket();
        return;
      }
    }
  }

  void await_writable() {
    if (std::exchange(awaits_writable_, true)) return;
    socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                       [self = shared_from_this(), number = connection_](std::error_code error) {
                         if (number != self->connection_) return;
                         self->awaits_writable_ = false;
                         if (!error && !self->abandoned_) self->pump();
                       });
  }

  void close_socket() {
    std::error_code ignored;
    socket_.close(ignored);
    outgoing_.clear();
    awaits_writable_ = false;
  }

  void arm_timer() {
    const auto deadline = machine_.next_deadline();
    if (deadline == armed_) return;
    armed_ = deadline;
    timer_.cancel();
    if (!deadline) return;
    timer_.expires_at(*deadline);
    timer_.async_wait([self = shared_from_this()](std::error_code error) {
      if (error || self->abandoned_) return;
      self->armed_.reset();
      // What came while this program was not running is heard before the silence is judged.
      self->read_all();
      self->machine_.on_time(Clock::now());
      self->pump();
    });
  }

  asio::io_context& io_;
  Endpoint endpoint_;
  ControlMachine machine_;
  Sink sink_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  std::optional<ControlMachine::Time> armed_;
  std::optional<Dialer> dialer_;
  std::optional<std::uint64_t> connection_;  // the machine's number of the present one
  Endpoint local_endpoint_{};
  std::string outgoing_;
  bool awaits_writable_ = false;
  bool scheduled_ = false;  // a turn of the loop will pump
  bool pumping_ = false;    // the sink is being called; its calls are done right after
  bool abandoned_ = false;
};

ControlClient::ControlClient(asio::io_context& io, ControlOptions options, Sink sink)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(sink))) {}

ControlClient::~ControlClient() {
  impl_->abandon();
}

void ControlClient::open() {
  impl_->machine().open(Clock::now());
  impl_->schedule();
}

void ControlClient::watch(std::uint32_t watch, std::string key, bool prefix) {
  impl_->machine().watch(watch, std::move(key), prefix);
  impl_->schedule();
}

void ControlClient::unwatch(std::uint32_t watch) {
  impl_->machine().unwatch(watch);
  impl_->schedule();
}

void ControlClient::commit(std::uint64_t request, ControlTransaction transaction) {
  impl_->machine().commit(request, std::move(transaction));
  impl_->schedule();
}

void ControlClient::close() {
  impl_->machine().close(Clock::now());
  impl_->schedule();
}

const Endpoint& ControlClient::local_endpoint() const {
  return impl_->local_endpoint();
}

const std::string& ControlClient::last_error() const {
  return impl_->machine().last_error();
}

}  // namespace drun::store
