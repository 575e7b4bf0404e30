// What the TCPStore clients can ask a store, as values: the requests of a call, and what its reply
// means. Both clients, the synchronous and the asynchronous one, are made of these.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::store {

// One request.
struct ClientStep {
  tcpstore::Op op = tcpstore::Op::Ping;
  std::size_t count = 0;  // of its keys
  std::string bytes;      // empty: the version has no such request
};

// The requests of a call, each sent when the one before it was answered. The last reply is the
// call's; a CHECK that says no ends it early, without values.
struct ClientCall {
  std::string about;  // the keys, for messages
  std::vector<ClientStep> steps;
  bool bare = false;  // errors are the cause alone, without request and endpoint
};

// A call, and its reply as the user's type.
template <typename T>
struct TypedCall {
  ClientCall call;
  std::function<T(tcpstore::Reply&)> read;
};

// Makes the calls of one connection. Keys are as the user names them.
class ClientCalls {
 public:
  using Keys = std::vector<std::string>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  ClientCalls(TcpStoreVersion version, const ClientOptions& options);

  [[nodiscard]] TypedCall<Done> set(std::string_view key, std::string_view value) const;
  [[nodiscard]] TypedCall<std::string> get(std::string_view key) const;
  [[nodiscard]] TypedCall<std::optional<std::string>> try_get(std::string_view key) const;
  [[nodiscard]] TypedCall<std::int64_t> add(std::string_view key, std::int64_t amount) const;
  [[nodiscard]] TypedCall<std::string> compare_set(std::string_view key, std::string_view expected,
                                                   std::string_view desired) const;
  [[nodiscard]] TypedCall<bool> check(const Keys& keys) const;
  [[nodiscard]] TypedCall<Done> wait(const Keys& keys) const;
  [[nodiscard]] TypedCall<std::int64_t> num_keys() const;
  [[nodiscard]] TypedCall<bool> delete_key(std::string_view key) const;
  [[nodiscard]] TypedCall<Done> append(std::string_view key, std::string_view value) const;
  [[nodiscard]] TypedCall<std::vector<std::string>> multi_get(const Keys& keys) const;
  [[nodiscard]] TypedCall<Done> multi_set(const Pairs& keys_and_values) const;
  [[nodiscard]] TypedCall<Done> ping() const;
  [[nodiscard]] TypedCall<Done> queue_push(std::string_view queue, std::string_view value) const;
  [[nodiscard]] TypedCall<std::optional<std::string>> queue_pop(std::string_view queue) const;
  [[nodiscard]] TypedCall<std::optional<std::string>> queue_try_pop(std::string_view queue) const;
  [[nodiscard]] TypedCall<std::int64_t> queue_len(std::string_view queue) const;
  [[nodiscard]] TypedCall<std::vector<std::string>> list_keys() const;
  [[nodiscard]] TypedCall<Done> barrier(std::string_view key, std::int64_t world_size) const;
  [[nodiscard]] TypedCall<std::int64_t> announce() const;

 private:
  [[nodiscard]] ClientStep step(const tcpstore::Request& request) const;
  // `rest`: the other fields of the request.
  [[nodiscard]] ClientStep keyed(tcpstore::Op op, std::string_view key,
                                 tcpstore::Request rest = {}) const;
  [[nodiscard]] ClientStep keyed(tcpstore::Op op, const Keys& keys) const;

  TcpStoreVersion version_;
  std::string prefix_;  // stands before each of the user's keys on the server
};

// The first call of a connection: proves that the peer speaks the version. `nonce` is any number.
[[nodiscard]] ClientCall handshake(TcpStoreVersion version, std::uint32_t nonce);
// Its reply; the error is Errc::NotAStore.
[[nodiscard]] Status check_handshake(TcpStoreVersion version, std::uint32_t nonce,
                                     const tcpstore::Reply& reply);

// Why servers close on this request, as far as one can know: they never say it.
[[nodiscard]] std::string_view closing_hint(tcpstore::Op op);

// "5 s", "1.5 s", "20 ms".
[[nodiscard]] std::string to_text(std::chrono::steady_clock::duration duration);

// What a peer sent, or a key, for a message: "'HTTP'" or "0x160301"; the beginning, if it is long.
[[nodiscard]] std::string quote_bytes(std::string_view bytes);

}  // namespace drun::store
