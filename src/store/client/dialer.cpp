#include "store/client/dialer.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "base/file_descriptor.hpp"
#include "store/client/async_look_up.hpp"
#include "store/client/connect_policy.hpp"
#include "store/client/socket.hpp"

namespace drun::store {

class Dialer::Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(asio::io_context& io, Callback callback, std::size_t first)
      : callback_(std::move(callback)), descriptor_(io), timer_(io), look_up_(io), next_(first) {}

  [[nodiscard]] std::size_t address() const { return next_ - 1; }

  void begin(const Endpoint& endpoint) {
    endpoint_ = endpoint;
    addresses_ = literal_addresses(endpoint);
    if (!addresses_.empty()) {
      next_address();
      return;
    }
    look_up_.ask(endpoint, [self = shared_from_this()](Result<Addresses> found) {
      self->looked_up(std::move(found));
    });
  }

  void cancel() {
    callback_ = nullptr;
    timer_.cancel();
    look_up_.abandon();
    close_descriptor();
  }

 private:
  void looked_up(Result<Addresses> found) {
    if (!found) {
      finish(look_up_failure(endpoint_, found.error()));
      return;
    }
    addresses_ = std::move(*found);
    next_address();
  }

  // Tries addresses_[next_], and calls back when there is none left.
  void next_address() {
    while (next_ < addresses_.size()) {
      auto socket = begin_connect(addresses_[next_++]);
      if (!socket) {
        error_ = socket.error();
        continue;
      }
      descriptor_.assign(socket->release());
      descriptor_.async_wait(asio::posix::stream_descriptor::wait_write,
                             [self = shared_from_this()](std::error_code) { self->writable(); });
      timer_.expires_after(kConnectLimit);
      timer_.async_wait([self = shared_from_this(), tried = next_](std::error_code error) {
        if (!error && self->next_ == tried) self->late();
      });
      return;
    }
    finish(error_);
  }

  void writable() {
    if (!callback_ || !descriptor_.is_open()) return;
    const Status connected = connect_error(descriptor_.native_handle());
    if (connected) {
      finish(FileDescriptor(descriptor_.release()));
      return;
    }
    error_ = connected.error();
    close_descriptor();
    timer_.cancel();
    next_address();
  }

  void late() {
    if (!callback_ || !descriptor_.is_open()) return;
    error_ = Error::from_errno(ETIMEDOUT, "connect");
    error_ = Error(error_.code(), error_.code().message());
    close_descriptor();
    next_address();
  }

  void close_descriptor() {
    std::error_code ignored;
    descriptor_.close(ignored);
  }

  // From the loop, so that nobody is called from inside the constructor.
  void finish(Result<FileDescriptor> result) {
    timer_.cancel();
    outcome_ = std::move(result);
    asio::post(timer_.get_executor(), [self = shared_from_this()] {
      if (auto callback = std::exchange(self->callback_, nullptr)) {
        callback(std::move(self->outcome_));
      }
    });
  }

  Callback callback_;  // null: called, or cancelled
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer timer_;
  Endpoint endpoint_;
  AsyncLookUp look_up_;
  Addresses addresses_;
  std::size_t next_;
  Error error_{std::make_error_code(std::errc::host_unreachable), "the name has no address"};
  Result<FileDescriptor> outcome_;
};

Dialer::Dialer(asio::io_context& io, const Endpoint& endpoint, Callback callback, std::size_t first)
    : attempt_(std::make_shared<Attempt>(io, std::move(callback), first)) {
  attempt_->begin(endpoint);
}

Dialer::~Dialer() {
  attempt_->cancel();
}

std::size_t Dialer::address() const {
  return attempt_->address();
}

}  // namespace drun::store
