#include "drun/store/async_client.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/random_bytes.hpp"
#include "drun/store/errors.hpp"
#include "store/client/backoff.hpp"
#include "store/client/client_calls.hpp"
#include "store/client/client_fsm.hpp"
#include "store/client/connect_policy.hpp"
#include "store/client/resolve.hpp"
#include "store/client/socket.hpp"
#include "store/client/stream_connection.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {

// The thin shell around the machine: calls, and the way to a connection.
class AsyncClient::Impl final : public StreamConnection {
 public:
  Impl(asio::io_context& io, Endpoint endpoint, ClientOptions options)
      : StreamConnection(io, options.tls),
        endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        version_(options_.version.value_or(TcpStoreVersion::Torch2_2)),
        calls_(version_, options_),
        connect_timer_(io),
        backoff_(kFirstPause, kLongestPause, random_seed()),
        never_connected_(endpoint_, version_, 0) {
    never_connected_.on_closed(Error(Errc::Closed, ""));
  }

  using StreamConnection::io;
  [[nodiscard]] const ClientCalls& calls() const { return calls_; }
  [[nodiscard]] bool connected() const { return phase_ == Phase::Open; }
  [[nodiscard]] TcpStoreVersion version() const { return version_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }
  [[nodiscard]] Endpoint local_endpoint() {
    return is_open() ? to_endpoint(local_address_of(fd())) : Endpoint{};
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

  void abandon() override {
    StreamConnection::abandon();
    connect_timer_.cancel();
    on_connect_ = nullptr;
    fsm_.reset();
  }

 private:
  enum class Phase { Closed, Dialing, Handshake, Pausing, Open };

  // ---- calls ----

  void start(ClientCall call, std::chrono::milliseconds limit, ClientFsm::Finished finished) {
    // The machine of the last connection knows why it ended.
    const bool has_fsm = fsm_ && (phase_ == Phase::Open || phase_ == Phase::Closed);
    ClientFsm& fsm = has_fsm ? *fsm_ : never_connected_;
    fsm.start(std::move(call), limit, Clock::now(), std::move(finished));
    schedule();
  }

  bool do_round() override {
    flush();
    if (fsm_ && !fsm_->open()) {
      close();
      if (phase_ == Phase::Open) phase_ = Phase::Closed;
    }
    std::vector<ClientFsm::Outcome> outcomes = never_connected_.take_outcomes();
    if (outcomes.empty() && fsm_) outcomes = fsm_->take_outcomes();
    for (ClientFsm::Outcome& outcome : outcomes) {
      outcome.finished(std::move(outcome.result));
      if (is_abandoned()) return false;
    }
    return !outcomes.empty();
  }

  [[nodiscard]] bool is_wanted() const override { return fsm_ && fsm_->open(); }
  [[nodiscard]] std::string_view output() override { return fsm_->output(); }
  void on_sent(std::size_t bytes) override { fsm_->on_sent(bytes); }
  void on_received(std::string_view bytes) override { fsm_->on_received(bytes); }
  void on_broken(int error) override {
    fsm_->on_closed(network_error(error == 0 ? ECONNRESET : error));
  }
  void on_unproven(secure::TlsEngine::Failure failure) override {
    fsm_->on_closed(Error(Errc::WrongToken, "it " + token_refusal(failure)));
  }
  [[nodiscard]] std::optional<Time> next_deadline() const override {
    return fsm_ ? fsm_->next_deadline() : std::nullopt;
  }
  void on_time(Time now) override {
    if (fsm_) fsm_->on_time(now);
  }

  // ---- the way to a connection ----

  // Of an attempt: all addresses from the first on, each as the newest version, then perhaps as the
  // oldest.
  void first_attempt() {
    address_ = 0;
    failure_.reset();
    dial_as(options_.version.value_or(TcpStoreVersion::Torch2_2));
  }

  void dial_as(TcpStoreVersion version) {
    phase_ = Phase::Dialing;
    version_ = version;
    arm_connect_timer(deadline_, [](Impl& self) {
      self.stop_dialing();
      self.attempt_failed(self.last_cause_.value_or(Error(Errc::Timeout, "no connection in time")));
    });
    dial(endpoint_, address_);
  }

  void on_dialed(Result<FileDescriptor> socket) override {
    if (!socket) {
      attempt_failed(failure_.value_or(socket.error()));
      return;
    }
    address_ = dialed_address();
    phase_ = Phase::Handshake;
    fsm_.emplace(endpoint_, version_, options_.max_value_bytes);
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    fsm_->start(handshake(version_, nonce), handshake_limit(deadline_, Clock::now()), Clock::now(),
                [this, nonce](Result<tcpstore::Reply> reply) {
                  const Status store = reply ? check_handshake(version_, nonce, *reply)
                                             : Status(handshake_failure(reply.error()));
                  handshake_done(store);
                });
    adopt(std::move(*socket));
    schedule();
  }

  void handshake_done(const Status& store) {
    if (store) {
      phase_ = Phase::Open;
      calls_ = ClientCalls(version_, options_);
      connect_finished(Done{});
      return;
    }
    close();
    const bool newest = version_ == TcpStoreVersion::Torch2_2;
    // If the oldest version fails, too, the newest one's failure says more.
    if (!failure_ || newest) failure_ = store.error();
    if (store.error().code() == Errc::NotAStore) {
      attempt_failed(store.error());
    } else if (!options_.version && newest && may_be_older(store.error())) {
      dial_as(TcpStoreVersion::Torch1_13);
    } else {
      ++address_;  // the name may have another
      dial_as(options_.version.value_or(TcpStoreVersion::Torch2_2));
    }
  }

  void attempt_failed(const Error& cause) {
    const ConnectLimits limits{endpoint_, options_.retry, start_, deadline_};
    const auto now = Clock::now();
    last_cause_ = cause;
    if (auto failure = connect_failure(limits, cause, now)) {
      phase_ = Phase::Closed;
      fsm_.reset();
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
    connect_timer_.async_wait([self = std::static_pointer_cast<Impl>(shared_from_this()), action,
                               number = ++connect_timers_](std::error_code error) {
      if (error || self->is_abandoned() || number != self->connect_timers_) return;
      if (self->phase_ == Phase::Dialing || self->phase_ == Phase::Pausing) action(*self);
    });
  }

  Endpoint endpoint_;
  ClientOptions options_;
  TcpStoreVersion version_;
  ClientCalls calls_;
  std::optional<ClientFsm> fsm_;  // of the present connection, or of the last one
  asio::steady_timer connect_timer_;
  std::uint64_t connect_timers_ = 0;  // the last one's number
  Backoff backoff_;
  ClientFsm never_connected_;  // refuses calls while there is no connection
  Callback<Done> on_connect_;
  Clock::time_point start_;
  Deadline deadline_;
  std::size_t address_ = 0;          // of the name's, the one being tried
  std::optional<Error> failure_;     // of a handshake, in this attempt
  std::optional<Error> last_cause_;  // of an attempt that failed
  Phase phase_ = Phase::Closed;
};

AsyncClient::AsyncClient(asio::io_context& io, Endpoint endpoint, ClientOptions options)
    : impl_(std::make_shared<Impl>(io, std::move(endpoint), std::move(options))) {}

AsyncClient::~AsyncClient() {
  impl_->abandon();
}

void AsyncClient::begin_connect(Deadline deadline, Callback<Done> callback, Timeout /*none*/) {
  impl_->connect(deadline, std::move(callback));
}

void AsyncClient::begin_set(std::string_view key, std::string_view value, Callback<Done> callback,
                            Timeout timeout) {
  impl_->start(impl_->calls().set(key, value), timeout, std::move(callback));
}

void AsyncClient::begin_get(std::string_view key, Callback<std::string> callback, Timeout timeout) {
  impl_->start(impl_->calls().get(key), timeout, std::move(callback));
}

void AsyncClient::begin_try_get(std::string_view key, Callback<std::optional<std::string>> callback,
                                Timeout timeout) {
  impl_->start(impl_->calls().try_get(key), timeout, std::move(callback));
}

void AsyncClient::begin_add(std::string_view key, std::int64_t amount,
                            Callback<std::int64_t> callback, Timeout timeout) {
  impl_->start(impl_->calls().add(key, amount), timeout, std::move(callback));
}

void AsyncClient::begin_compare_set(std::string_view key, std::string_view expected,
                                    std::string_view desired, Callback<std::string> callback,
                                    Timeout timeout) {
  impl_->start(impl_->calls().compare_set(key, expected, desired), timeout, std::move(callback));
}

void AsyncClient::begin_check(const Keys& keys, Callback<bool> callback, Timeout timeout) {
  impl_->start(impl_->calls().check(keys), timeout, std::move(callback));
}

void AsyncClient::begin_wait(const Keys& keys, Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().wait(keys), timeout, std::move(callback));
}

void AsyncClient::begin_num_keys(Callback<std::int64_t> callback, Timeout timeout) {
  impl_->start(impl_->calls().num_keys(), timeout, std::move(callback));
}

void AsyncClient::begin_delete_key(std::string_view key, Callback<bool> callback, Timeout timeout) {
  impl_->start(impl_->calls().delete_key(key), timeout, std::move(callback));
}

void AsyncClient::begin_append(std::string_view key, std::string_view value,
                               Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().append(key, value), timeout, std::move(callback));
}

void AsyncClient::begin_multi_get(const Keys& keys, Callback<std::vector<std::string>> callback,
                                  Timeout timeout) {
  impl_->start(impl_->calls().multi_get(keys), timeout, std::move(callback));
}

void AsyncClient::begin_multi_set(const Pairs& keys_and_values, Callback<Done> callback,
                                  Timeout timeout) {
  impl_->start(impl_->calls().multi_set(keys_and_values), timeout, std::move(callback));
}

void AsyncClient::begin_ping(Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().ping(), timeout, std::move(callback));
}

void AsyncClient::begin_queue_push(std::string_view queue, std::string_view value,
                                   Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().queue_push(queue, value), timeout, std::move(callback));
}

void AsyncClient::begin_queue_pop(std::string_view queue,
                                  Callback<std::optional<std::string>> callback, Timeout timeout) {
  impl_->start(impl_->calls().queue_pop(queue), timeout, std::move(callback));
}

void AsyncClient::begin_queue_try_pop(std::string_view queue,
                                      Callback<std::optional<std::string>> callback,
                                      Timeout timeout) {
  impl_->start(impl_->calls().queue_try_pop(queue), timeout, std::move(callback));
}

void AsyncClient::begin_queue_len(std::string_view queue, Callback<std::int64_t> callback,
                                  Timeout timeout) {
  impl_->start(impl_->calls().queue_len(queue), timeout, std::move(callback));
}

void AsyncClient::begin_list_keys(Callback<std::vector<std::string>> callback, Timeout timeout) {
  impl_->start(impl_->calls().list_keys(), timeout, std::move(callback));
}

void AsyncClient::begin_barrier(std::string_view key, std::int64_t world_size,
                                Callback<Done> callback, Timeout timeout) {
  impl_->start(impl_->calls().barrier(key, world_size), timeout, std::move(callback));
}

void AsyncClient::begin_announce(Callback<std::int64_t> callback, Timeout timeout) {
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

asio::io_context& AsyncClient::context() const {
  return impl_->io();
}

}  // namespace drun::store
