// The asynchronous client with the synchronous one's face, so that a test can run on both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "drun/store/async_client.hpp"

namespace drun::test {

class AwaitedClient {
 public:
  using Keys = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  using Timeout = store::Client::Timeout;
  using Text = std::optional<std::string>;

  static Result<AwaitedClient> connect(const Endpoint& endpoint,
                                       store::AsyncClient::Deadline deadline,
                                       store::ClientOptions options = {}) {
    AwaitedClient client(endpoint, std::move(options));
    const Status connected =
        client.await<Done>([&](auto done) { client.client_->connect(deadline, done); });
    if (!connected) return connected.error();
    return client;
  }

  Status set(std::string_view key, std::string_view value, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->set(key, value, done, t); });
  }
  Result<std::string> get(std::string_view key, Timeout t = {}) {
    return await<std::string>([&](auto done) { client_->get(key, done, t); });
  }
  Result<Text> try_get(std::string_view key, Timeout t = {}) {
    return await<Text>([&](auto done) { client_->try_get(key, done, t); });
  }
  Result<std::int64_t> add(std::string_view key, std::int64_t amount, Timeout t = {}) {
    return await<std::int64_t>([&](auto done) { client_->add(key, amount, done, t); });
  }
  Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                  std::string_view desired, Timeout t = {}) {
    return await<std::string>(
        [&](auto done) { client_->compare_set(key, expected, desired, done, t); });
  }
  Result<bool> check(const Keys& keys, Timeout t = {}) {
    return await<bool>([&](auto done) { client_->check(keys, done, t); });
  }
  Status wait(const Keys& keys, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->wait(keys, done, t); });
  }
  Result<std::int64_t> num_keys(Timeout t = {}) {
    return await<std::int64_t>([&](auto done) { client_->num_keys(done, t); });
  }
  Result<bool> delete_key(std::string_view key, Timeout t = {}) {
    return await<bool>([&](auto done) { client_->delete_key(key, done, t); });
  }
  Status append(std::string_view key, std::string_view value, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->append(key, value, done, t); });
  }
  Result<Keys> multi_get(const Keys& keys, Timeout t = {}) {
    return await<Keys>([&](auto done) { client_->multi_get(keys, done, t); });
  }
  Status multi_set(const Pairs& pairs, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->multi_set(pairs, done, t); });
  }
  Status ping(Timeout t = {}) {
    return await<Done>([&](auto done) { client_->ping(done, t); });
  }
  Status queue_push(std::string_view queue, std::string_view value, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->queue_push(queue, value, done, t); });
  }
  Result<Text> queue_pop(std::string_view queue, Timeout t = {}) {
    return await<Text>([&](auto done) { client_->queue_pop(queue, done, t); });
  }
  Result<Text> queue_try_pop(std::string_view queue, Timeout t = {}) {
    return await<Text>([&](auto done) { client_->queue_try_pop(queue, done, t); });
  }
  Result<std::int64_t> queue_len(std::string_view queue, Timeout t = {}) {
    return await<std::int64_t>([&](auto done) { client_->queue_len(queue, done, t); });
  }
  Result<Keys> list_keys(Timeout t = {}) {
    return await<Keys>([&](auto done) { client_->list_keys(done, t); });
  }
  Status barrier(std::string_view key, std::int64_t world_size, Timeout t = {}) {
    return await<Done>([&](auto done) { client_->barrier(key, world_size, done, t); });
  }
  Result<std::int64_t> announce(Timeout t = {}) {
    return await<std::int64_t>([&](auto done) { client_->announce(done, t); });
  }

  [[nodiscard]] bool connected() const { return client_->connected(); }
  [[nodiscard]] store::TcpStoreVersion version() const { return client_->version(); }
  [[nodiscard]] Endpoint local_endpoint() const { return client_->local_endpoint(); }

 private:
  AwaitedClient(const Endpoint& endpoint, store::ClientOptions options)
      : io_(std::make_unique<asio::io_context>(1)),
        client_(std::make_unique<store::AsyncClient>(*io_, endpoint, std::move(options))) {}

  // Runs the loop until the callback that `start` was given has been called.
  template <typename T, typename Start>
  Result<T> await(const Start& start) {
    std::optional<Result<T>> result;
    start(store::AsyncClient::Callback<T>([&](Result<T> outcome) { result = std::move(outcome); }));
    if (result)
      return Error(std::make_error_code(std::errc::operation_in_progress),
                   "called back from inside the call");
    io_->restart();
    while (!result && io_->run_one() > 0) {
    }
    if (!result)
      return Error(std::make_error_code(std::errc::operation_canceled),
                   "the loop has ended without a call");
    return std::move(*result);
  }

  std::unique_ptr<asio::io_context> io_;
  std::unique_ptr<store::AsyncClient> client_;
};

}  // namespace drun::test
