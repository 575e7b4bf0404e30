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
// any more. Null: nobody wants to know.
//
// In the callback's place each call also takes Asio's completion tokens, and then ends with the
// same Result:
//
//   std::future<Result<std::string>> peer = store.get("address/1", asio::use_future, 10s);
//   Result<std::string> peer = co_await store.get("address/1", asio::use_awaitable, 10s);
//
// A handler with an executor of its own (bind_executor, a coroutine on a strand) is called there. A
// call with use_awaitable begins when it is awaited; the client must live until then. Asio's
// cancellation does not reach a call: give it a time limit. If the client is destroyed first, the
// future throws std::future_error (broken promise), and the coroutine is destroyed where it waits.
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
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

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
  template <typename Token>
  auto connect(Deadline deadline, Token&& token) {
    return start<Done>(&AsyncClient::begin_connect, std::forward<Token>(token), Timeout(),
                       deadline);
  }

  // Each ends with what the call of Client with its name returns.
  template <typename Token>
  auto set(std::string_view key, std::string_view value, Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_set, std::forward<Token>(token), timeout, key, value);
  }
  template <typename Token>
  auto get(std::string_view key, Token&& token, Timeout timeout = {}) {
    return start<std::string>(&AsyncClient::begin_get, std::forward<Token>(token), timeout, key);
  }
  template <typename Token>
  auto try_get(std::string_view key, Token&& token, Timeout timeout = {}) {
    return start<std::optional<std::string>>(&AsyncClient::begin_try_get,
                                             std::forward<Token>(token), timeout, key);
  }
  template <typename Token>
  auto add(std::string_view key, std::int64_t amount, Token&& token, Timeout timeout = {}) {
    return start<std::int64_t>(&AsyncClient::begin_add, std::forward<Token>(token), timeout, key,
                               amount);
  }
  template <typename Token>
  auto compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   Token&& token, Timeout timeout = {}) {
    return start<std::string>(&AsyncClient::begin_compare_set, std::forward<Token>(token), timeout,
                              key, expected, desired);
  }
  template <typename Token>
  auto check(const Keys& keys, Token&& token, Timeout timeout = {}) {
    return start<bool>(&AsyncClient::begin_check, std::forward<Token>(token), timeout, keys);
  }
  template <typename Token>
  auto wait(const Keys& keys, Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_wait, std::forward<Token>(token), timeout, keys);
  }
  template <typename Token>
  auto num_keys(Token&& token, Timeout timeout = {}) {
    return start<std::int64_t>(&AsyncClient::begin_num_keys, std::forward<Token>(token), timeout);
  }
  template <typename Token>
  auto delete_key(std::string_view key, Token&& token, Timeout timeout = {}) {
    return start<bool>(&AsyncClient::begin_delete_key, std::forward<Token>(token), timeout, key);
  }
  template <typename Token>
  auto append(std::string_view key, std::string_view value, Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_append, std::forward<Token>(token), timeout, key, value);
  }
  template <typename Token>
  auto multi_get(const Keys& keys, Token&& token, Timeout timeout = {}) {
    return start<std::vector<std::string>>(&AsyncClient::begin_multi_get,
                                           std::forward<Token>(token), timeout, keys);
  }
  template <typename Token>
  auto multi_set(const Pairs& keys_and_values, Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_multi_set, std::forward<Token>(token), timeout,
                       keys_and_values);
  }
  template <typename Token>
  auto ping(Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_ping, std::forward<Token>(token), timeout);
  }
  template <typename Token>
  auto queue_push(std::string_view queue, std::string_view value, Token&& token,
                  Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_queue_push, std::forward<Token>(token), timeout, queue,
                       value);
  }
  template <typename Token>
  auto queue_pop(std::string_view queue, Token&& token, Timeout timeout = {}) {
    return start<std::optional<std::string>>(&AsyncClient::begin_queue_pop,
                                             std::forward<Token>(token), timeout, queue);
  }
  template <typename Token>
  auto queue_try_pop(std::string_view queue, Token&& token, Timeout timeout = {}) {
    return start<std::optional<std::string>>(&AsyncClient::begin_queue_try_pop,
                                             std::forward<Token>(token), timeout, queue);
  }
  template <typename Token>
  auto queue_len(std::string_view queue, Token&& token, Timeout timeout = {}) {
    return start<std::int64_t>(&AsyncClient::begin_queue_len, std::forward<Token>(token), timeout,
                               queue);
  }
  template <typename Token>
  auto list_keys(Token&& token, Timeout timeout = {}) {
    return start<std::vector<std::string>>(&AsyncClient::begin_list_keys,
                                           std::forward<Token>(token), timeout);
  }
  template <typename Token>
  auto barrier(std::string_view key, std::int64_t world_size, Token&& token, Timeout timeout = {}) {
    return start<Done>(&AsyncClient::begin_barrier, std::forward<Token>(token), timeout, key,
                       world_size);
  }
  template <typename Token>
  auto announce(Token&& token, Timeout timeout = {}) {
    return start<std::int64_t>(&AsyncClient::begin_announce, std::forward<Token>(token), timeout);
  }

  [[nodiscard]] bool connected() const;
  // Of the present connection, or of the last one.
  [[nodiscard]] TcpStoreVersion version() const;
  // This end of the connection; an empty host without one.
  [[nodiscard]] Endpoint local_endpoint() const;
  // As it was asked for.
  [[nodiscard]] const Endpoint& endpoint() const;

 private:
  class Impl;
  using Executor = asio::io_context::executor_type;

  // A function and nothing else: it gives nothing back, and has no executor of its own.
  template <typename Token, typename T>
  static constexpr bool kIsCallback = [] {
    if constexpr (std::is_null_pointer_v<Token> || std::is_same_v<Token, Callback<T>>)
      return true;
    else if constexpr (std::is_invocable_v<Token&, Result<T>>)
      return std::is_void_v<std::invoke_result_t<Token&, Result<T>>> &&
             std::is_same_v<asio::associated_executor_t<Token, Executor>, Executor>;
    else
      return false;
  }();
  // What a call that begins later must have of its own.
  static std::string owned(std::string_view text) { return std::string(text); }
  template <typename Other>
  requires(!std::is_convertible_v<const Other&, std::string_view>) static Other
      owned(const Other& other) {
    return other;
  }

  // Makes the call; what it ends with goes to the callback, or to the handler that Asio makes of
  // the token.
  template <typename T, typename... Params, typename Token, typename... Args>
  auto start(void (AsyncClient::*call)(Params...), Token&& token, Timeout timeout,
             const Args&... args) {
    if constexpr (kIsCallback<std::decay_t<Token>, T>) {
      (this->*call)(args..., Callback<T>(std::forward<Token>(token)), timeout);
    } else {
      auto begin = [this, call, timeout, own = std::tuple(owned(args)...)](Callback<T> done) {
        std::apply([&](const auto&... arg) { (this->*call)(arg..., std::move(done), timeout); },
                   own);
      };
      return asio::async_initiate<Token, void(Result<T>)>(
          [&io = context()](auto handler, const auto& begin_now) {
            begin_now(as_callback<T>(io, std::move(handler)));
          },
          token, std::move(begin));
    }
  }
  // Calls the handler where it wants to be called, and keeps that place from running out of work.
  template <typename T, typename Handler>
  static Callback<T> as_callback(asio::io_context& io, Handler handler) {
    auto work = asio::make_work_guard(asio::get_associated_executor(handler, io.get_executor()));
    return [work, kept = std::make_shared<Handler>(std::move(handler))](Result<T> result) {
      auto call = [kept, result = std::move(result)]() mutable {
        Handler last(std::move(*kept));
        std::move(last)(std::move(result));
      };
      asio::dispatch(work.get_executor(), std::move(call));
    };
  }
  [[nodiscard]] asio::io_context& context() const;

  void begin_connect(Deadline deadline, Callback<Done> callback, Timeout timeout);
  void begin_set(std::string_view key, std::string_view value, Callback<Done> callback,
                 Timeout timeout);
  void begin_get(std::string_view key, Callback<std::string> callback, Timeout timeout);
  void begin_try_get(std::string_view key, Callback<std::optional<std::string>> callback,
                     Timeout timeout);
  void begin_add(std::string_view key, std::int64_t amount, Callback<std::int64_t> callback,
                 Timeout timeout);
  void begin_compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                         Callback<std::string> callback, Timeout timeout);
  void begin_check(const Keys& keys, Callback<bool> callback, Timeout timeout);
  void begin_wait(const Keys& keys, Callback<Done> callback, Timeout timeout);
  void begin_num_keys(Callback<std::int64_t> callback, Timeout timeout);
  void begin_delete_key(std::string_view key, Callback<bool> callback, Timeout timeout);
  void begin_append(std::string_view key, std::string_view value, Callback<Done> callback,
                    Timeout timeout);
  void begin_multi_get(const Keys& keys, Callback<std::vector<std::string>> callback,
                       Timeout timeout);
  void begin_multi_set(const Pairs& keys_and_values, Callback<Done> callback, Timeout timeout);
  void begin_ping(Callback<Done> callback, Timeout timeout);
  void begin_queue_push(std::string_view queue, std::string_view value, Callback<Done> callback,
                        Timeout timeout);
  void begin_queue_pop(std::string_view queue, Callback<std::optional<std::string>> callback,
                       Timeout timeout);
  void begin_queue_try_pop(std::string_view queue, Callback<std::optional<std::string>> callback,
                           Timeout timeout);
  void begin_queue_len(std::string_view queue, Callback<std::int64_t> callback, Timeout timeout);
  void begin_list_keys(Callback<std::vector<std::string>> callback, Timeout timeout);
  void begin_barrier(std::string_view key, std::int64_t world_size, Callback<Done> callback,
                     Timeout timeout);
  void begin_announce(Callback<std::int64_t> callback, Timeout timeout);

  std::shared_ptr<Impl> impl_;  // shared with its pending handlers, which do nothing afterwards
};

}  // namespace drun::store
