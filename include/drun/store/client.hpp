// A synchronous client of the TCPStore protocol: of drun's store, and of PyTorch's own servers from
// torch 1.13 on. One connection, no threads of its own, no dependency beyond the C library.
//
//   auto store = drun::store::Client::connect();  // a worker's; or connect({"host", 29500}, 30s)
//   if (!store) return fail(store.error().what());
//   auto rank = store->add("rank", 1);
//   auto peer = store->get("address/1", 10s);  // waits until somebody has set it
//   auto all = store->exchange(me.rank, me.world_size, my_address);  // what all have given
//
// Keys and values are bytes. A key is sent as torch's clients send it, with "/" in front, so both
// see the same keys; ClientOptions has the other ways.
//
// Every call has a time limit: its own, or ClientOptions::timeout. Errors are one line that names
// the endpoint, the request and the cause, never a value. Their codes: Errc::Timeout; Closed (by
// the peer, or by an earlier error); NotAStore (connect only); Malformed; LimitExceeded (a reply
// above max_value_bytes); Unsupported (the version has no such request; nothing was sent); or an
// errno value of the network.
//
// After an error other than Unsupported, or the Timeout of a call that waits (wait, get, multi_get,
// queue_pop, barrier), the connection is closed: replies carry no number, so a late one would be
// taken for the next. There is no reconnection, because nobody can say whether a request that got
// no reply was applied: connect again and look.
//
// Not thread-safe: one thread at a time.
#pragma once

// In front of all that an older standard lacks, and of what a compiler says of that.
#if __cplusplus <= 201703L
#error "drun needs C++20: compile with -std=c++20"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/errors.hpp"
#include "drun/store/tcpstore_version.hpp"
#include "drun/store/values.hpp"

namespace drun::secure {
class TlsContext;
}

namespace drun::store {

struct ClientOptions {
  // nullopt: Torch2_2, and Torch1_13 for a server that closes the connection in the handshake and
  // then answers as Torch1_13.
  std::optional<TcpStoreVersion> version{};
  // As torch's PrefixStore: key "k" becomes "prefix/k". Empty: none.
  std::string prefix{};
  // Keys go out as they are, without the "/" that torch's clients put in front.
  bool raw_keys = false;
  // False: connect() tries each address of the name once, and no more.
  bool retry = true;
  // The limit of a call that names none.
  std::chrono::milliseconds timeout{300'000};
  // A longer value or key in a reply is an error; memory grows only as bytes arrive.
  std::size_t max_value_bytes = std::size_t{1} << 30;
  // The job's token, of drun's own programs: TLS with it alone, and no store without it. Null:
  // none.
  std::shared_ptr<const secure::TlsContext> tls{};
};

class Client {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;
  // nullopt: ClientOptions::timeout. Zero or less: only what is there already.
  using Timeout = std::optional<std::chrono::milliseconds>;

  // Tries until `deadline`, with growing random pauses: every address of the name, which is looked
  // up again each time (numeric addresses and "localhost" never are), IPv6 and IPv4. A peer that
  // answers something other than the protocol is an error at once.
  [[nodiscard]] static Result<Client> connect(const Endpoint& endpoint, Deadline deadline,
                                              const ClientOptions& options = {});
  // The same, for at most this long from now on.
  [[nodiscard]] static Result<Client> connect(const Endpoint& endpoint,
                                              std::chrono::milliseconds limit,
                                              const ClientOptions& options = {});
  // In a worker: to the workers' store, which MASTER_ADDR and MASTER_PORT name (drun/worker.hpp).
  [[nodiscard]] static Result<Client> connect(
      std::chrono::milliseconds limit = std::chrono::seconds(30),
      const ClientOptions& options = {});
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // No reply exists: success means that the request has left for the server.
  [[nodiscard]] Status set(std::string_view key, std::string_view value, Timeout timeout = {});
  // Waits until the key exists.
  [[nodiscard]] Result<std::string> get(std::string_view key, Timeout timeout = {});
  // The value now, or nullopt: CHECK, then GET. Between the two another client may delete the key:
  // that gives an empty value (drun, torch with libuv) or a closed connection (torch without).
  [[nodiscard]] Result<std::optional<std::string>> try_get(std::string_view key,
                                                           Timeout timeout = {});
  // Adds to a decimal number (a missing key counts as 0); the new value. A server closes the
  // connection when the key holds something else.
  [[nodiscard]] Result<std::int64_t> add(std::string_view key, std::int64_t amount,
                                         Timeout timeout = {});
  // Stores `desired` if the key holds `expected` (empty: also if it is missing). What the key holds
  // afterwards; for a missing key and a non-empty `expected`, `expected`.
  [[nodiscard]] Result<std::string> compare_set(std::string_view key, std::string_view expected,
                                                std::string_view desired, Timeout timeout = {});
  // Whether all exist now.
  [[nodiscard]] Result<bool> check(const std::vector<std::string>& keys, Timeout timeout = {});
  // Until all exist. On time-out the wait is cancelled and the connection stays usable; torch 1.13
  // cannot cancel, there the connection is closed.
  [[nodiscard]] Status wait(const std::vector<std::string>& keys, Timeout timeout = {});
  // Of the whole server: other prefixes and torch's worker counter too.
  [[nodiscard]] Result<std::int64_t> num_keys(Timeout timeout = {});
  // Whether it was there.
  [[nodiscard]] Result<bool> delete_key(std::string_view key, Timeout timeout = {});

  // All-gather: gives every rank the values of all, in the order of the ranks. Collective: each of
  // the ranks 0 to `size` - 1 calls it, as often as the others, and each through one client; the
  // n-th call of one meets the n-th of the others. Against every server, in keys of its own below
  // "exchange/", of which two for each rank stay behind.
  //
  // Errors: std::errc::invalid_argument for a rank or a size that cannot be. A Timeout says which
  // ranks have not come (not with Torch1_13); a call with the same value then goes on with the same
  // exchange.
  [[nodiscard]] Result<std::vector<std::string>> exchange(int rank, int size,
                                                          std::string_view value,
                                                          Timeout timeout = {});

  // Values of other types: values.hpp says which, and how they are stored. A value that does not
  // fit the type is an error, Errc::Malformed, and leaves the connection open.
  template <Storable T>
  [[nodiscard]] Status set(std::string_view key, const T& value, Timeout timeout = {}) {
    return set(key, std::string_view(encode(value)), timeout);
  }
  template <Readable T>
  [[nodiscard]] Result<T> get(std::string_view key, Timeout timeout = {}) {
    return get(key, timeout).and_then([&](const std::string& bytes) {
      return decoded<T>(bytes, key);
    });
  }
  template <Storable T>
  requires Readable<T>
  [[nodiscard]] Result<std::vector<T>> exchange(int rank, int size, const T& value,
                                                Timeout timeout = {}) {
    const auto values = exchange(rank, size, std::string_view(encode(value)), timeout);
    if (!values) return values.error();
    std::vector<T> result;
    for (const std::string& bytes : *values) {
      auto one = decoded<T>(bytes, "exchange/");
      if (!one) return one.error();
      result.push_back(*std::move(one));
    }
    return result;
  }

  // Torch2_1 and Torch2_2. Append creates a missing key; like set and multi_set it has no reply.
  [[nodiscard]] Status append(std::string_view key, std::string_view value, Timeout timeout = {});
  // Waits until all exist; the values in the order of the keys.
  [[nodiscard]] Result<std::vector<std::string>> multi_get(const std::vector<std::string>& keys,
                                                           Timeout timeout = {});
  [[nodiscard]] Status multi_set(
      const std::vector<std::pair<std::string, std::string>>& keys_and_values,
      Timeout timeout = {});

  // Torch2_2; a server older than torch 2.5 (ping), 2.8 (queues; also torch's server without
  // libuv) or 2.14 (list_keys, barrier) closes the connection.
  [[nodiscard]] Status ping(Timeout timeout = {});
  [[nodiscard]] Status queue_push(std::string_view queue, std::string_view value,
                                  Timeout timeout = {});
  // Waits for an item. nullopt: another client took it first.
  [[nodiscard]] Result<std::optional<std::string>> queue_pop(std::string_view queue,
                                                             Timeout timeout = {});
  // nullopt: the queue is empty.
  [[nodiscard]] Result<std::optional<std::string>> queue_try_pop(std::string_view queue,
                                                                 Timeout timeout = {});
  [[nodiscard]] Result<std::int64_t> queue_len(std::string_view queue, Timeout timeout = {});
  // The keys under this client's prefix, without it, in no order.
  [[nodiscard]] Result<std::vector<std::string>> list_keys(Timeout timeout = {});
  // Counts this caller at `key` and waits until `world_size` have come. A key serves once. A caller
  // that ran out of time stays counted.
  [[nodiscard]] Status barrier(std::string_view key, std::int64_t world_size, Timeout timeout = {});

  // Counts this client under the key at which a torch server with a world_size counts its workers
  // ("init/", whatever the prefix). Returns how many have come so far.
  [[nodiscard]] Result<std::int64_t> announce(Timeout timeout = {});

  [[nodiscard]] bool connected() const;
  [[nodiscard]] TcpStoreVersion version() const;
  // This end of the connection: the address under which the server's host can see this one.
  [[nodiscard]] Endpoint local_endpoint() const;
  // As it was asked for.
  [[nodiscard]] const Endpoint& endpoint() const;
  // ClientOptions::timeout.
  [[nodiscard]] std::chrono::milliseconds timeout() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  template <typename T>
  Result<T> decoded(const std::string& bytes, std::string_view key) const {
    Result<T> value = decode<T>(bytes);
    if (value) return value;
    return misfit(key, value.error());
  }
  // The same error, with the key and the endpoint.
  [[nodiscard]] Error misfit(std::string_view key, const Error& error) const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::store
