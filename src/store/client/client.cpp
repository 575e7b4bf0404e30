#include "drun/store/client.hpp"

#include "drun/worker.hpp"
#include "store/client/client_calls.hpp"
#include "store/client/client_connection.hpp"
#include "store/client/exchange.hpp"

namespace drun::store {

class Client::Impl {
 public:
  Impl(Endpoint endpoint, const ClientOptions& options,
       std::unique_ptr<ClientConnection> connection)
      : endpoint_(std::move(endpoint)),
        timeout_(options.timeout),
        calls_(connection->version(), options),
        connection_(std::move(connection)) {}

  [[nodiscard]] const ClientCalls& calls() const { return calls_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  [[nodiscard]] ExchangeSeries& exchanges() { return exchanges_; }

  template <typename T>
  Result<T> run(TypedCall<T> call, Timeout timeout) {
    Result<tcpstore::Reply> reply =
        connection_->run(std::move(call.call), timeout.value_or(timeout_));
    if (!reply) return reply.error();
    return call.read(*reply);
  }

  [[nodiscard]] const ClientConnection& connection() const { return *connection_; }
  [[nodiscard]] const Endpoint& endpoint() const { return endpoint_; }

 private:
  Endpoint endpoint_;
  std::chrono::milliseconds timeout_;
  ClientCalls calls_;
  std::unique_ptr<ClientConnection> connection_;
  ExchangeSeries exchanges_;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const Endpoint& endpoint, Deadline deadline,
                               const ClientOptions& options) {
  auto connection = ClientConnection::open(endpoint, deadline, options);
  if (!connection) return connection.error();
  return Client(std::make_unique<Impl>(endpoint, options, std::move(*connection)));
}

Result<Client> Client::connect(const Endpoint& endpoint, std::chrono::milliseconds limit,
                               const ClientOptions& options) {
  return connect(endpoint, Clock::now() + limit, options);
}

Result<Client> Client::connect(std::chrono::milliseconds limit, const ClientOptions& options) {
  const auto endpoint = worker_store();
  if (!endpoint) return endpoint.error();
  return connect(*endpoint, limit, options);
}

Status Client::set(std::string_view key, std::string_view value, Timeout timeout) {
  return impl_->run(impl_->calls().set(key, value), timeout);
}

Result<std::string> Client::get(std::string_view key, Timeout timeout) {
  return impl_->run(impl_->calls().get(key), timeout);
}

Result<std::optional<std::string>> Client::try_get(std::string_view key, Timeout timeout) {
  return impl_->run(impl_->calls().try_get(key), timeout);
}

Result<std::int64_t> Client::add(std::string_view key, std::int64_t amount, Timeout timeout) {
  return impl_->run(impl_->calls().add(key, amount), timeout);
}

Result<std::string> Client::compare_set(std::string_view key, std::string_view expected,
                                        std::string_view desired, Timeout timeout) {
  return impl_->run(impl_->calls().compare_set(key, expected, desired), timeout);
}

Result<bool> Client::check(const std::vector<std::string>& keys, Timeout timeout) {
  return impl_->run(impl_->calls().check(keys), timeout);
}

Status Client::wait(const std::vector<std::string>& keys, Timeout timeout) {
  return impl_->run(impl_->calls().wait(keys), timeout);
}

Result<std::int64_t> Client::num_keys(Timeout timeout) {
  return impl_->run(impl_->calls().num_keys(), timeout);
}

Result<bool> Client::delete_key(std::string_view key, Timeout timeout) {
  return impl_->run(impl_->calls().delete_key(key), timeout);
}

Result<std::vector<std::string>> Client::exchange(int rank, int size, std::string_view value,
                                                  Timeout timeout) {
  return impl_->exchanges().next(*this, rank, size, value,
                                 Clock::now() + timeout.value_or(impl_->timeout()));
}

Error Client::misfit(std::string_view key, const Error& error) const {
  return Error(error.code(),
               quote_bytes(key) + " at " + to_string(endpoint()) + ": " + error.what());
}

Status Client::append(std::string_view key, std::string_view value, Timeout timeout) {
  return impl_->run(impl_->calls().append(key, value), timeout);
}

Result<std::vector<std::string>> Client::multi_get(const std::vector<std::string>& keys,
                                                   Timeout timeout) {
  return impl_->run(impl_->calls().multi_get(keys), timeout);
}

Status Client::multi_set(const std::vector<std::pair<std::string, std::string>>& keys_and_values,
                         Timeout timeout) {
  return impl_->run(impl_->calls().multi_set(keys_and_values), timeout);
}

Status Client::ping(Timeout timeout) {
  return impl_->run(impl_->calls().ping(), timeout);
}

Status Client::queue_push(std::string_view queue, std::string_view value, Timeout timeout) {
  return impl_->run(impl_->calls().queue_push(queue, value), timeout);
}

Result<std::optional<std::string>> Client::queue_pop(std::string_view queue, Timeout timeout) {
  return impl_->run(impl_->calls().queue_pop(queue), timeout);
}

Result<std::optional<std::string>> Client::queue_try_pop(std::string_view queue, Timeout timeout) {
  return impl_->run(impl_->calls().queue_try_pop(queue), timeout);
}

Result<std::int64_t> Client::queue_len(std::string_view queue, Timeout timeout) {
  return impl_->run(impl_->calls().queue_len(queue), timeout);
}

Result<std::vector<std::string>> Client::list_keys(Timeout timeout) {
  return impl_->run(impl_->calls().list_keys(), timeout);
}

Status Client::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  return impl_->run(impl_->calls().barrier(key, world_size), timeout);
}

Result<std::int64_t> Client::announce(Timeout timeout) {
  return impl_->run(impl_->calls().announce(), timeout);
}

bool Client::connected() const {
  return impl_->connection().connected();
}

TcpStoreVersion Client::version() const {
  return impl_->connection().version();
}

Endpoint Client::local_endpoint() const {
  return impl_->connection().local_endpoint();
}

const Endpoint& Client::endpoint() const {
  return impl_->endpoint();
}

std::chrono::milliseconds Client::timeout() const {
  return impl_->timeout();
}

}  // namespace drun::store
