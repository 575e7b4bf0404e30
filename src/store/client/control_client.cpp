#include "drun/store/control_client.hpp"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <asio/io_context.hpp>

#include "base/random_bytes.hpp"
#include "store/client/control_fsm.hpp"
#include "store/client/resolve.hpp"
#include "store/client/stream_connection.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::store {
namespace {

std::string closed_because(int error) {
  return error == 0 || error == ECONNRESET || error == EPIPE
             ? "it closed the connection"
             : std::generic_category().message(error);
}

}  // namespace

// The thin shell around the machine: its connection and its events.
class ControlClient::Impl final : public StreamConnection {
 public:
  Impl(asio::io_context& io, ControlOptions options, Sink sink)
      : StreamConnection(io, options.tls),
        fsm_(std::move(options), random_seed()),
        sink_(std::move(sink)) {}

  ControlFsm& fsm() { return fsm_; }
  const ControlFsm& fsm() const { return fsm_; }
  const Endpoint& local_endpoint() const { return local_endpoint_; }
  Endpoint store_endpoint() const { return to_endpoint(store_address_); }
  std::optional<ControlFarewell> farewell(std::string_view sign) const {
    std::string bytes = fsm_.farewell(sign);
    if (bytes.empty()) return std::nullopt;
    return ControlFarewell{std::string(store_address_.bytes()), std::move(bytes)};
  }

  void abandon() override {
    by_name_.reset();
    spare_.reset();
    StreamConnection::abandon();
  }

 private:
  bool do_round() override {
    follow_connection();
    if (!fsm_.is_reconnecting()) {
      by_name_.reset();
      spare_.reset();
    }
    if (tell_caller()) return !is_abandoned();
    flush();
    return tell_caller() ? !is_abandoned() : !is_wanted();
  }

  // What there is to tell, before anything is sent. False: there was nothing.
  bool tell_caller() {
    std::vector<ControlEvent> events = fsm_.take_events();
    for (ControlEvent& event : events) {
      sink_(std::move(event));
      if (is_abandoned()) break;
    }
    return !events.empty();
  }

  void follow_connection() {
    const auto wanted = fsm_.wanted_connection();
    if (wanted == connection_) return;
    connection_ = wanted;
    stop_dialing();
    close();
    outgoing_.clear();
    if (!wanted) return;
    if (!fsm_.is_reconnecting()) return dial(fsm_.endpoint());
    if (spare_) return use(std::move(spare_));
    dial(to_endpoint(store_address_));
    const bool has_one_address = literal_addresses(fsm_.endpoint()).size() == 1;  // for certain
    if (!by_name_ && !has_one_address) dial_name();
  }

  // After a break the attempts go to the address that the store had, and are short. Its name may
  // have another address by now; but a look-up may take long, and so may addresses that do not
  // answer. So an attempt by name runs beside the others for as long as it takes.
  void dial_name() {
    by_name_.emplace(io(), fsm_.endpoint(), [this](Result<FileDescriptor> socket) {
      const auto self = shared_from_this();
      by_name_.reset();
      if (!socket) return;  // the next attempt tries again
      if (connection_ && is_wanted() && !is_open()) {
        stop_dialing();
        on_dialed(std::move(socket));
      } else {
        spare_ = std::move(*socket);
      }
    });
  }

  void use(FileDescriptor socket) {
    local_endpoint_ = to_endpoint(local_address_of(socket.get()));
    // None, if the other side has reset it already: then the next attempt goes to the last one.
    if (const auto peer = peer_address_of(socket.get()); !peer.empty()) store_address_ = peer;
    adopt(std::move(socket));
    fsm_.on_connected(Clock::now());
  }

  void on_dialed(Result<FileDescriptor> socket) override {
    // The machine has gone elsewhere since, and that attempt is yet to begin.
    if (!is_wanted()) return pump();
    if (socket) {
      use(std::move(*socket));
    } else {
      fsm_.on_connect_failed(socket.error().what(), Clock::now(),
                             socket.error().code() == std::errc::connection_refused);
    }
    pump();
  }

  [[nodiscard]] bool is_wanted() const override { return connection_ == fsm_.wanted_connection(); }
  [[nodiscard]] std::string_view output() override {
    outgoing_ += fsm_.take_output(Clock::now());
    return outgoing_;
  }
  void on_sent(std::size_t bytes) override { outgoing_.erase(0, bytes); }
  void on_received(std::string_view bytes) override { fsm_.on_received(bytes, Clock::now()); }
  void on_broken(int error) override {
    outgoing_.clear();
    fsm_.on_disconnected(closed_because(error), Clock::now());
  }
  void on_unproven(secure::TlsEngine::Failure failure) override {
    outgoing_.clear();
    fsm_.on_refused(token_refusal(failure), Clock::now());
  }
  [[nodiscard]] std::optional<Time> next_deadline() const override { return fsm_.next_deadline(); }
  void on_time(Time now) override { fsm_.on_time(now); }

  ControlFsm fsm_;
  Sink sink_;
  std::optional<std::uint64_t> connection_;  // the machine's number of the present one
  Endpoint local_endpoint_{};
  SocketAddress store_address_;  // that the last connection had
  std::optional<Dialer> by_name_;
  FileDescriptor spare_;  // connected by name while another connection was tried
  std::string outgoing_;
};

ControlClient::ControlClient(asio::io_context& io, ControlOptions options, Sink sink)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(sink))) {}

ControlClient::~ControlClient() {
  impl_->abandon();
}

void ControlClient::open() {
  impl_->fsm().open(StreamConnection::Clock::now());
  impl_->schedule();
}

void ControlClient::watch(std::uint32_t watch, std::string key, bool prefix) {
  impl_->fsm().watch(watch, std::move(key), prefix);
  impl_->schedule();
}

void ControlClient::unwatch(std::uint32_t watch) {
  impl_->fsm().unwatch(watch);
  impl_->schedule();
}

void ControlClient::commit(std::uint64_t request, ControlTransaction transaction) {
  impl_->fsm().commit(request, std::move(transaction));
  impl_->schedule();
}

void ControlClient::vote(const Place& place) {
  impl_->fsm().vote(place, StreamConnection::Clock::now());
  impl_->schedule();
}

void ControlClient::go_to(const Endpoint& endpoint, bool founds) {
  impl_->fsm().go_to(endpoint, StreamConnection::Clock::now(), founds);
  impl_->schedule();
}

void ControlClient::close() {
  impl_->fsm().close(StreamConnection::Clock::now());
  impl_->schedule();
}

const Endpoint& ControlClient::local_endpoint() const {
  return impl_->local_endpoint();
}

Endpoint ControlClient::store_endpoint() const {
  return impl_->store_endpoint();
}

std::optional<ControlFarewell> ControlClient::farewell(std::string_view sign) const {
  return impl_->farewell(sign);
}

std::string ControlClient::proof_of_death() const {
  return impl_->fsm().proof_of_death();
}

const std::string& ControlClient::last_error() const {
  return impl_->fsm().last_error();
}

}  // namespace drun::store
