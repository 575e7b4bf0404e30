// An asynchronous client of the TCPStore protocol, on Asio: the calls of client.hpp without
// blocking. Against drun's store, and PyTorch's own servers from torch 1.13 on.
//
//   drun::store::AsyncClient store(io, {"10.0.0.1", 29500});
//   store.connect(Clock::now() + 30s, [&](Status connected) {
//     if (!connected) return fail(connected.error().what());
//     store.set("address/0", "10.0.0.1:4711", [](Status) {});
//     store.get("address/1", [](Result<std::string> peer) { ... }, 10s);
//   });
//   io.run();
//
// Keys, values, time limits and errors are those of Client, and so is what the calls mean.
//
// A call returns at once. Its callback comes exactly once, from the io_context, never from inside a
// call; it may call the client, and may destroy it. Once the client is destroyed no callback comes
// any more.
//
// Requests do not wait for one another's replies: all calls of one turn of the loop leave in one
// write. The store answers in order, and callbacks come in the order of the calls. But a call made
// after one that waits (wait, get, multi_get, queue_pop, barrier) leaves only when that one is
// over, because their replies could not be told apart. Calls that must go on meanwhile, such as the
// set that ends the wait, need a second AsyncClient.
//
// A call that has not left when its time is over fails alone. One whose reply is late, other than a
// wait that the store can cancel, ends the connection, and every call after it: then, as after
// any other break, connected() is false, calls fail with Errc::Closed, and connect() may be called
// again. Nothing is sent twice.
//
// Not thread-safe: all calls, the destructor included, from the io_context's one thread, or while
// nobody runs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

namespace asio {
class io_context;
}

namespace drun::store {

class AsyncClient {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;
  using Timeout = Client::Timeout;
  template <typename T>
  using Callback = std::function<void(Result<T>)>;
  using Keys = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // `io` must outlive this. Nothing happens before connect().
  AsyncClient(asio::io_context& io, Endpoint endpoint, ClientOptions options = {});
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;
  ~AsyncClient();  // closes the connection; the callbacks of calls under way are dropped

  // As Client::connect: tries until `deadline`, with growing random pauses (without
  // ClientOptions::retry: once). Calls before it has succeeded fail. Precondition: not connected,
  // and not connecting.
  void connect(Deadline deadline, Callback<Done> callback);

  void set(std::string_view key, std::string_view value, Callback<Done> callback,
           Timeout timeout = {});
  void get(std::string_view key, Callback<std::string> callback, Timeout timeout = {});
  void try_get(std::string_view key, Callback<std::optional<std::string>> callback,
               Timeout timeout = {});
  void add(std::string_view key, std::int64_t amount, Callback<std::int64_t> callback,
           Timeout timeout = {});
  void compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Callback<std::string> callback, Timeout timeout = {});
  void check(const Keys& keys, Callback<bool> callback, Timeout timeout = {});
  void wait(const Keys& keys, Callback<Done> callback, Timeout timeout = {});
  void num_keys(Callback<std::int64_t> callback, Timeout timeout = {});
  void delete_key(std::string_view key, Callback<bool> callback, Timeout timeout = {});
  void append(std::string_view key, std::string_view value, Callback<Done> callback,
              Timeout timeout = {});
  void multi_get(const Keys& keys, Callback<std::vector<std::string>> callback,
                 Timeout timeout = {});
  void multi_set(const Pairs& keys_and_values, Callback<Done> callback, Timeout timeout = {});
  void ping(Callback<Done> callback, Timeout timeout = {});
  void queue_push(std::string_view queue, std::string_view value, Callback<Done> callback,
                  Timeout timeout = {});
  void queue_pop(std::string_view queue, Callback<std::optional<std::string>> callback,
                 Timeout timeout = {});
  void queue_try_pop(std::string_view queue, Callback<std::optional<std::string>> callback,
                     Timeout timeout = {});
  void queue_len(std::string_view queue, Callback<std::int64_t> callback, Timeout timeout = {});
  void list_keys(Callback<std::vector<std::string>> callback, Timeout timeout = {});
  void barrier(std::string_view key, std::int64_t world_size, Callback<Done> callback,
               Timeout timeout = {});
  void announce(Callback<std::int64_t> callback, Timeout timeout = {});

  [[nodiscard]] bool connected() const;
  // Of the present connection, or of the last one.
  [[nodiscard]] TcpStoreVersion version() const;
  // This end of the connection; an empty host without one.
  [[nodiscard]] Endpoint local_endpoint() const;
  // As it was asked for.
  [[nodiscard]] const Endpoint& endpoint() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with its pending handlers, which do nothing afterwards
};

}  // namespace drun::store
