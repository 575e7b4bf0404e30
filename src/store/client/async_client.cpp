#include "drun/store/async_client.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <random>
#include <system_error>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "drun/store/errors.hpp"
#include "store/client/backoff.hpp"
#include "store/client/client_calls.hpp"
#include "store/client/client_machine.hpp"
#include "store/client/connecting.hpp"
#include "store/client/dialer.hpp"
#include "store/client/resolve.hpp"
#include "store/client/socket.hpp"

namespace drun::store {

// The thin shell around the machine: sockets, the timer, turns of the loop, and the way to a
// connection.
class AsyncClient::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, Endpoint endpoint, ClientOptions options)
      : io_(io),
        endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        version_(options_.version.value_or(TcpStoreVersion::Torch2_2)),
        calls_(version_, options_),
        socket_(io),
        timer_(io),
        connect_timer_(io),
        backoff_(kFirstPause, kLongestPause, std::random_device{}()),
        never_connected_(endpoint_, version_, 0) {
    never_connected_.on_closed(Error(Errc::Closed, ""));
  }

  [[nodiscard]] const ClientCalls& calls() const { return calls_; }
  [[nodiscard]] bool connected() const { return phase_ == Phase::Open; }
  [[nodiscard]] TcpStoreVersion version() const { return version_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] Endpoint local_endpoint() {
    return socket_.is_open() ? local_endpoint_of(socket_.native_handle()) : Endpoint{};
  }

  void connect(Deadline deadline, Callback<Done> callback) {
    assert(phase_ == Phase::Closed);
    on_connect_ = std::move(callback);
    start_ = Clock::now();
    deadline_ = deadline;
    last_cause_.reset();
    backoff_.reset();
    first_attempt();
  }

  template <typename T>
  void start(TypedCall<T> call, Timeout timeout, Callback<T> callback) {
    start(std::move(call.call), timeout.value_or(options_.timeout),
          [read = std::move(call.read),
           callback = std::move(callback)](Result<tcpstore::Reply> reply) {
            if (!callback) return;
            callback(reply ? Result<T>(read(*reply)) : Result<T>(reply.error()));
          });
  }

  void abandon() {
    abandoned_ = true;
    dialer_.reset();
    close_socket();
    timer_.cancel();
    connect_timer_.cancel();
    on_connect_ = nullptr;
    machine_.reset();
  }

 private:
  enum class Phase { Closed, Dialing, Handshake, Pausing, Open };

  // ---- calls ----

  void start(ClientCall call, std::chrono::milliseconds limit, ClientMachine::Finished finished) {
    // The machine of the last connection knows why it ended.
    const bool has_machine = machine_ && (phase_ == Phase::Open || phase_ == Phase::Closed);
    ClientMachine& machine = has_machine ? *machine_ : never_connected_;
    machine.start(std::move(call), limit, Clock::now(), std::move(finished));
    schedule();
  }

  // What calls have asked for is done in the next turn of the loop, in one write.
  void schedule() {
    if (std::exchange(scheduled_, true)) return;
    asio::post(io_, [self = shared_from_this()] {
      self->scheduled_ = false;
      self->pump();
    });
  }

  // Sends, and calls back. The last thing that a handler does.
  void pump() {
    while (!abandoned_) {
      flush();
      if (machine_ && !machine_->open() && socket_.is_open()) close_connection();
      std::vector<ClientMachine::Outcome> outcomes = never_connected_.take_outcomes();
      if (outcomes.empty() && machine_) outcomes = machine_->take_outcomes();
      if (outcomes.empty()) break;
      for (ClientMachine::Outcome& outcome : outcomes) {
        outcome.finished(std::move(outcome.result));
        if (abandoned_) return;
      }
    }
    if (!abandoned_) arm_timer();
  }

  void flush() {
    while (socket_.is_open() && machine_->open() && !machine_->output().empty()) {
      const std::string_view output = machine_->output();
      const ssize_t n = ::send(socket_.native_handle(), output.data(), output.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) {
        machine_->on_sent(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN) {
        await_writable();
        return;
      } else if (errno != EINTR) {
        machine_->on_closed(network_error(errno));
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

  void await_readable() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [self = shared_from_this(), number = connection_](std::error_code error) {
                         if (error || self->abandoned_ || number != self->connection_) return;
                         self->read_all();
                         if (self->machine_->open()) self->await_readable();
                         self->pump();
                       });
  }

  void read_all() {
    while (machine_->open()) {
      const ssize_t n =
          ::recv(socket_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (n > 0) {
        machine_->on_received({buffer_.data(), static_cast<std::size_t>(n)});
        if (static_cast<std::size_t>(n) < buffer_.size()) return;
      } else if (n == 0) {
        machine_->on_closed(network_error(ECONNRESET));
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR) {
        machine_->on_closed(network_error(errno));
      }
    }
  }

  void arm_timer() {
    const auto deadline = machine_ ? machine_->next_deadline() : std::nullopt;
    if (deadline == armed_) return;
    armed_ = deadline;
    timer_.cancel();
    if (!deadline) return;
    timer_.expires_at(*deadline);
    timer_.async_wait([self = shared_from_this()](std::error_code error) {
      if (error || self->abandoned_) return;
      self->armed_.reset();
      if (!self->socket_.is_open()) return;
      self->read_all();  // what has come while this program did not run is not late
      self->machine_->on_time(Clock::now());
      self->pump();
    });
  }

  void close_connection() {
    close_socket();
    if (phase_ == Phase::Open) phase_ = Phase::Closed;
  }

  void close_socket() {
    ++connection_;
    std::error_code ignored;
    socket_.close(ignored);
    awaits_writable_ = false;
  }

  // ---- the way to a connection ----

  // Of an attempt: all addresses from the first on, each as torch 2.2, then perhaps as 1.13.
  void first_attempt() {
    address_ = 0;
    failure_.reset();
    dial(options_.version.value_or(TcpStoreVersion::Torch2_2));
  }

  void dial(TcpStoreVersion version) {
    phase_ = Phase::Dialing;
    version_ = version;
    arm_connect_timer(deadline_, [](Impl& self) {
      self.dialer_.reset();
      self.attempt_failed(self.last_cause_.value_or(Error(Errc::Timeout, "no connection in time")));
    });
    dialer_.emplace(
        io_, endpoint_,
        [this](Result<FileDescriptor> socket) {
          dialed(std::move(socket));  // the dialer calls nobody after its end, before mine
        },
        address_);
  }

  void dialed(Result<FileDescriptor> socket) {
    const auto self = shared_from_this();  // the callback may drop the last reference
    connect_timer_.cancel();
    if (!socket) {
      attempt_failed(failure_.value_or(socket.error()));
      return;
    }
    address_ = dialer_->address();
    phase_ = Phase::Handshake;
    socket_.assign(socket->release());
    ++connection_;
    machine_.emplace(endpoint_, version_, options_.max_value_bytes);
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    machine_->start(handshake(version_, nonce), handshake_limit(deadline_, Clock::now()),
                    Clock::now(), [this, nonce](Result<tcpstore::Reply> reply) {
                      const Status store = reply ? check_handshake(version_, nonce, *reply)
                                                 : Status(handshake_failure(reply.error()));
                      handshake_done(store);
                    });
    await_readable();
    schedule();
  }

  void handshake_done(const Status& store) {
    if (store) {
      phase_ = Phase::Open;
      calls_ = ClientCalls(version_, options_);
      connect_finished(Done{});
      return;
    }
    close_socket();
    const bool older =
        !options_.version && version_ == TcpStoreVersion::Torch2_2 && may_be_older(store.error());
    // If the oldest version fails, too, the failure of the newest one says more.
    if (!failure_ || version_ == TcpStoreVersion::Torch2_2) failure_ = store.error();
    if (store.error().code() == Errc::NotAStore) {
      attempt_failed(store.error());
    } else if (older) {
      dial(TcpStoreVersion::Torch1_13);
    } else {
      ++address_;  // the name may have another
      dial(options_.version.value_or(TcpStoreVersion::Torch2_2));
    }
  }

  void attempt_failed(Error cause) {
    const ConnectLimits limits{endpoint_, options_.retry, start_, deadline_};
    const auto now = Clock::now();
    last_cause_ = cause;
    if (auto failure = connect_failure(limits, cause, now)) {
      phase_ = Phase::Closed;
      machine_.reset();
      connect_finished(std::move(*failure));
      return;
    }
    phase_ = Phase::Pausing;
    arm_connect_timer(std::min<Deadline>(now + backoff_.next(), deadline_), [](Impl& self) {
      if (Clock::now() < self.deadline_) return self.first_attempt();
      self.attempt_failed(*self.last_cause_);
    });
  }

  void connect_finished(Status status) {
    connect_timer_.cancel();
    if (auto callback = std::exchange(on_connect_, nullptr)) callback(std::move(status));
  }

  void arm_connect_timer(Deadline deadline, void (*action)(Impl&)) {
    connect_timer_.expires_at(deadline);
    connect_timer_.async_wait(
        [self = shared_from_this(), action, number = ++connect_timers_](std::error_code error) {
          if (error || self->abandoned_ || number != self->connect_timers_) return;
          if (self->phase_ == Phase::Dialing || self->phase_ == Phase::Pausing) action(*self);
        });
  }

  asio::io_context& io_;
  Endpoint endpoint_;
  ClientOptions options_;
  TcpStoreVersion version_;
  ClientCalls calls_;
  std::optional<ClientMachine> machine_;  // of the present connection, or of the last one
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  std::optional<ClientMachine::Time> armed_;
  asio::steady_timer connect_timer_;
  std::uint64_t connect_timers_ = 0;  // the last one's number
  std::optional<Dialer> dialer_;
  Backoff backoff_;
  ClientMachine never_connected_;  // refuses calls while there is no connection
  Callback<Done> on_connect_;
  Clock::time_point start_;
  Deadline deadline_;
  std::size_t address_ = 0;          // of the name's, the one being tried
  std::optional<Error> failure_;     // of a handshake, in this attempt
  std::optional<Error> last_cause_;  // of an attempt that failed
  std::uint64_t connection_ = 0;     // grows with each socket, so that late handlers know theirs
  std::array<char, 65536> buffer_;
  Phase phase_ = Phase::Closed;
  bool awaits_writable_ = false;
  bool scheduled_ = false;  // a turn of the loop will pump
  bool abandoned_ = false;
};

AsyncClient::AsyncClient(asio::io_context& io, Endpoint endpoint, ClientOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(endpoint), std::move(options))) {}

AsyncClient::~AsyncClient() {
  impl_->abandon();
}

void AsyncClient::connect(Deadline deadline, Callback<Done> callback) {
  impl_->connect(deadline, std::move(callback));
}

void AsyncClient::set(std::string_view key, std::string_view value, Callback<Done> callback,
                      Timeout timeout) {
  impl_->start(impl_->calls().set(key, value), timeout, std::move(callback));
}

void AsyncClient::get(std::string_view key, Callback<std::string> callback, Timeout timeout) {
  impl_->start(impl_->calls().get(key), timeout, std::move(callback));
}

void AsyncClient::try_get(std::string_view key, Callback<std::optional<std::string>> callback,
                          Timeout timeout) {
  impl_->start(impl_->calls().try_get(key), timeout, std::move(callback));
}

void AsyncClient::add(std::string_view key, std::int64_t amount, Callback<std::int64_t> callback,
                      Timeout timeout) {
  impl_->start(impl_->calls().add(key, amount), timeout, std::move(callback));
}

void AsyncClient::compare_set(std::string_view key, std::string_view expected,
                              std::string_view desired, Callback<std::string> callback,
                              Timeout timeout) {
  impl_->start(impl_->calls().compare_set(key, expected, desired), timeout, std::move(callback));
}

void AsyncClient::check(const Keys& keys, Callback<bool> callback, Timeout timeout) {
  impl_->start(impl_->calls().check(keys), timeout, std::move(callback));
}

void AsyncClient::wait(const Keys& keys, Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().wait(keys), timeout, std::move(callback));
}

void AsyncClient::num_keys(Callback<std::int64_t> callback, Timeout timeout) {
  impl_->start(impl_->calls().num_keys(), timeout, std::move(callback));
}

void AsyncClient::delete_key(std::string_view key, Callback<bool> callback, Timeout timeout) {
  impl_->start(impl_->calls().delete_key(key), timeout, std::move(callback));
}

void AsyncClient::append(std::string_view key, std::string_view value, Callback<Done> callback,
                         Timeout timeout) {
  impl_->start(impl_->calls().append(key, value), timeout, std::move(callback));
}

void AsyncClient::multi_get(const Keys& keys, Callback<std::vector<std::string>> callback,
                            Timeout timeout) {
  impl_->start(impl_->calls().multi_get(keys), timeout, std::move(callback));
}

void AsyncClient::multi_set(const Pairs& keys_and_values, Callback<Done> callback,
                            Timeout timeout) {
  impl_->start(impl_->calls().multi_set(keys_and_values), timeout, std::move(callback));
}

void AsyncClient::ping(Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().ping(), timeout, std::move(callback));
}

void AsyncClient::queue_push(std::string_view queue, std::string_view value,
                             Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().queue_push(queue, value), timeout, std::move(callback));
}

void AsyncClient::queue_pop(std::string_view queue, Callback<std::optional<std::string>> callback,
                            Timeout timeout) {
  impl_->start(impl_->calls().queue_pop(queue), timeout, std::move(callback));
}

void AsyncClient::queue_try_pop(std::string_view queue,
                                Callback<std::optional<std::string>> callback, Timeout timeout) {
  impl_->start(impl_->calls().queue_try_pop(queue), timeout, std::move(callback));
}

void AsyncClient::queue_len(std::string_view queue, Callback<std::int64_t> callback,
                            Timeout timeout) {
  impl_->start(impl_->calls().queue_len(queue), timeout, std::move(callback));
}

void AsyncClient::list_keys(Callback<std::vector<std::string>> callback, Timeout timeout) {
  impl_->start(impl_->calls().list_keys(), timeout, std::move(callback));
}

void AsyncClient::barrier(std::string_view key, std::int64_t world_size, Callback<Done> callback,
                          Timeout timeout) {
  impl_->start(impl_->calls().barrier(key, world_size), timeout, std::move(callback));
}

void AsyncClient::announce(Callback<std::int64_t> callback, Timeout timeout) {
  impl_->start(impl_->calls().announce(), timeout, std::move(callback));
}

bool AsyncClient::connected() const {
  return impl_->connected();
}

TcpStoreVersion AsyncClient::version() const {
  return impl_->version();
}

Endpoint AsyncClient::local_endpoint() const {
  return impl_->local_endpoint();
}

const Endpoint& AsyncClient::endpoint() const {
  return impl_->endpoint();
}

}  // namespace drun::store
