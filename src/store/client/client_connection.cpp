#include "store/client/client_connection.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/random_bytes.hpp"
#include "drun/store/errors.hpp"
#include "store/client/backoff.hpp"
#include "store/client/connect_policy.hpp"

namespace drun::store {
namespace {

using std::chrono::steady_clock;

// One attempt after the other until the deadline.
class Connector {
 public:
  Connector(const Endpoint& endpoint, SteadyTime deadline, const ClientOptions& options)
      : endpoint_(endpoint), deadline_(deadline), options_(options) {}

  Result<std::unique_ptr<ClientConnection>> run() {
    ConnectLimits limits{endpoint_, options_.retry, steady_clock::now(), deadline_};
    Backoff backoff(kFirstPause, kLongestPause, random_seed());
    for (;;) {
      auto connection = attempt();
      if (connection) return connection;
      const SteadyTime now = steady_clock::now();
      limits.retry = options_.retry ||
                     is_crowded(options_.tls != nullptr, connection.error(), limits.start, now);
      if (auto failure = connect_failure(limits, connection.error(), now)) return *failure;
      std::this_thread::sleep_until(std::min(now + backoff.next(), deadline_));
    }
  }

 private:
  using Opened = Result<std::unique_ptr<ClientConnection>>;

  Opened attempt() {
    auto addresses = resolve(endpoint_, deadline_);
    if (!addresses) return addresses.error();
    Error last(std::make_error_code(std::errc::host_unreachable), "the name has no address");
    for (const SocketAddress& address : *addresses) {
      Opened opened = attempt(address);
      if (opened || is_final(opened.error())) return opened;
      last = opened.error();
    }
    return last;
  }

  Opened attempt(const SocketAddress& address) {
    if (options_.version) return attempt(address, *options_.version);
    Opened opened = attempt(address, TcpStoreVersion::Torch2_2);
    if (opened || !may_be_older(opened.error())) return opened;
    Opened older = attempt(address, TcpStoreVersion::Torch1_13);
    return older || is_final(older.error()) ? std::move(older) : std::move(opened);
  }

  Opened attempt(const SocketAddress& address, TcpStoreVersion version) {
    auto socket = connect_to(address, std::min(deadline_, steady_clock::now() + kConnectLimit));
    if (!socket) return socket.error();
    auto connection = std::make_unique<ClientConnection>(
        endpoint_, SecureSocket(std::move(*socket), options_.tls), version,
        options_.max_value_bytes);
    const auto nonce = static_cast<std::uint32_t>(::getpid());
    const auto reply =
        connection->run(handshake(version, nonce), handshake_limit(deadline_, steady_clock::now()));
    if (!reply) return handshake_failure(reply.error());
    if (const Status store = check_handshake(version, nonce, *reply); !store) return store.error();
    return connection;
  }

  const Endpoint& endpoint_;
  SteadyTime deadline_;
  const ClientOptions& options_;
};

}  // namespace

ClientConnection::ClientConnection(const Endpoint& endpoint, SecureSocket socket,
                                   TcpStoreVersion version, std::size_t max_value_bytes)
    : socket_(std::move(socket)), fsm_(endpoint, version, max_value_bytes) {}

Result<std::unique_ptr<ClientConnection>> ClientConnection::open(const Endpoint& endpoint,
                                                                 SteadyTime deadline,
                                                                 const ClientOptions& options) {
  return Connector(endpoint, deadline, options).run();
}

Result<tcpstore::Reply> ClientConnection::run(ClientCall call, std::chrono::milliseconds limit) {
  std::optional<Result<tcpstore::Reply>> result;
  fsm_.start(std::move(call), limit, steady_clock::now(),
             [&](Result<tcpstore::Reply> outcome) { result = std::move(outcome); });
  for (;;) {
    for (ClientFsm::Outcome& outcome : fsm_.take_outcomes())
      outcome.finished(std::move(outcome.result));
    if (!fsm_.open()) socket_.close();
    if (result) return std::move(*result);
    send_or_receive();
  }
}

// Until there is progress, or the call's time is over.
void ClientConnection::send_or_receive() {
  const SteadyTime deadline = fsm_.next_deadline().value();  // a call is under way
  const std::string_view output = fsm_.output();
  const auto moved = output.empty() ? socket_.receive_some(buffer_.data(), buffer_.size(), deadline)
                                    : socket_.send_some(output, deadline);
  if (!moved) {
    if (moved.error().code() == Errc::Timeout) return fsm_.on_time(steady_clock::now());
    return fsm_.on_closed(moved.error());
  }
  if (output.empty()) return fsm_.on_received({buffer_.data(), *moved});
  fsm_.on_sent(*moved);
}

Endpoint ClientConnection::local_endpoint() const {
  return to_endpoint(local_address_of(socket_.fd()));
}

}  // namespace drun::store
