#include "store/client/client_calls.hpp"

#include <algorithm>
#include <cstdio>

#include "base/duration_text.hpp"
#include "drun/store/errors.hpp"

namespace drun::store {

using tcpstore::encode;
using tcpstore::Op;
using tcpstore::Reply;
using tcpstore::Request;

namespace {

// A store with more keys than this has not been seen; "HTTP/1.1" as a number is far above.
constexpr std::int64_t kPlausibleKeys = std::int64_t{1} << 40;
// A server of torch 1.13 takes the handshake for a SET. With this byte in the nonce the key that it
// announces is so long that no server tries to allocate it.
constexpr std::uint32_t kLongKey = 0x00FF0000U;

std::string about(std::string_view key) {
  return " " + quote_bytes(key);
}

std::string about(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, keys.size()); ++i) {
    text += (i == 0 ? " " : ", ") + quote_bytes(keys[i]);
  }
  if (keys.size() > kShown) text += " and " + std::to_string(keys.size() - kShown) + " more";
  return text;
}

Done nothing(Reply& /*reply*/) {
  return {};
}
std::int64_t integer(Reply& reply) {
  return reply.integer;
}
std::string value(Reply& reply) {
  return std::move(reply.values.front());
}
std::optional<std::string> value_if_any(Reply& reply) {
  if (reply.values.empty()) return std::nullopt;
  return std::move(reply.values.front());
}
std::vector<std::string> values(Reply& reply) {
  return std::move(reply.values);
}

Error no_store(std::string_view bytes) {
  return Error(Errc::NotAStore, "this is not a TCPStore server: it answered " + quote_bytes(bytes));
}

}  // namespace

ClientCalls::ClientCalls(TcpStoreVersion version, const ClientOptions& options)
    : version_(version) {
  if (!options.raw_keys) prefix_ = "/";
  if (!options.prefix.empty()) prefix_.append(options.prefix).append("/");
}

ClientStep ClientCalls::step(const Request& request) const {
  ClientStep result{request.op, request.keys.size(), {}};
  if (tcpstore::opcode_of(version_, request.op)) encode(result.bytes, version_, request);
  return result;
}

ClientStep ClientCalls::keyed(Op op, std::string_view key, Request rest) const {
  const std::string full_key = prefix_ + std::string(key);
  rest.op = op;
  rest.key = full_key;
  return step(rest);
}

ClientStep ClientCalls::keyed(Op op, const Keys& keys) const {
  std::vector<std::string> full_keys;
  full_keys.reserve(keys.size());
  for (const std::string& key : keys)
    full_keys.push_back(prefix_ + key);
  return step({.op = op, .keys = {full_keys.begin(), full_keys.end()}});
}

TypedCall<Done> ClientCalls::set(std::string_view key, std::string_view value) const {
  return {{about(key), {keyed(Op::Set, key, {.value = value})}}, nothing};
}

TypedCall<std::string> ClientCalls::get(std::string_view key) const {
  return {{about(key), {keyed(Op::Wait, Keys{std::string(key)}), keyed(Op::Get, key)}}, value};
}

TypedCall<std::optional<std::string>> ClientCalls::try_get(std::string_view key) const {
  return {{about(key), {keyed(Op::Check, Keys{std::string(key)}), keyed(Op::Get, key)}},
          value_if_any};
}

TypedCall<std::int64_t> ClientCalls::add(std::string_view key, std::int64_t amount) const {
  return {{about(key), {keyed(Op::Add, key, {.number = amount})}}, integer};
}

TypedCall<std::string> ClientCalls::compare_set(std::string_view key, std::string_view expected,
                                                std::string_view desired) const {
  return {{about(key), {keyed(Op::CompareSet, key, {.value = desired, .expected = expected})}},
          value};
}

TypedCall<bool> ClientCalls::check(const Keys& keys) const {
  return {{about(keys), {keyed(Op::Check, keys)}},
          [](Reply& reply) { return reply.integer == tcpstore::kReady; }};
}

TypedCall<Done> ClientCalls::wait(const Keys& keys) const {
  return {{about(keys), {keyed(Op::Wait, keys)}}, nothing};
}

TypedCall<std::int64_t> ClientCalls::num_keys() const {
  return {{"", {step({.op = Op::GetNumKeys})}}, integer};
}

TypedCall<bool> ClientCalls::delete_key(std::string_view key) const {
  return {{about(key), {keyed(Op::DeleteKey, key)}},
          [](Reply& reply) { return reply.integer > 0; }};
}

TypedCall<Done> ClientCalls::append(std::string_view key, std::string_view value) const {
  return {{about(key), {keyed(Op::Append, key, {.value = value})}}, nothing};
}

TypedCall<std::vector<std::string>> ClientCalls::multi_get(const Keys& keys) const {
  return {{about(keys), {keyed(Op::Wait, keys), keyed(Op::MultiGet, keys)}}, values};
}

TypedCall<Done> ClientCalls::multi_set(const Pairs& keys_and_values) const {
  std::vector<std::string> full_keys;
  full_keys.reserve(keys_and_values.size());
  Request request{.op = Op::MultiSet};
  for (const auto& [key, value] : keys_and_values) {
    full_keys.push_back(prefix_ + key);
    request.values.emplace_back(value);
  }
  request.keys.assign(full_keys.begin(), full_keys.end());
  return {{"", {step(request)}}, nothing};
}

TypedCall<Done> ClientCalls::ping() const {
  return {{"", {step({.op = Op::Ping})}}, nothing};
}

TypedCall<Done> ClientCalls::queue_push(std::string_view queue, std::string_view value) const {
  return {{about(queue), {keyed(Op::QueuePush, queue, {.value = value})}}, nothing};
}

TypedCall<std::optional<std::string>> ClientCalls::queue_pop(std::string_view queue) const {
  return {{about(queue), {keyed(Op::Wait, Keys{std::string(queue)}), keyed(Op::QueuePop, queue)}},
          value_if_any};
}

TypedCall<std::optional<std::string>> ClientCalls::queue_try_pop(std::string_view queue) const {
  return {{about(queue), {keyed(Op::QueuePop, queue)}}, value_if_any};
}

TypedCall<std::int64_t> ClientCalls::queue_len(std::string_view queue) const {
  return {{about(queue), {keyed(Op::QueueLen, queue)}}, integer};
}

TypedCall<std::vector<std::string>> ClientCalls::list_keys() const {
  return {{"", {step({.op = Op::ListKeys})}}, [prefix = prefix_](Reply& reply) {
            std::vector<std::string> keys;
            for (const std::string& key : reply.values) {
              if (key.starts_with(prefix)) keys.push_back(key.substr(prefix.size()));
            }
            return keys;
          }};
}

TypedCall<Done> ClientCalls::barrier(std::string_view key, std::int64_t world_size) const {
  return {{about(key), {keyed(Op::Barrier, key, {.number = world_size})}}, nothing};
}

TypedCall<std::int64_t> ClientCalls::announce() const {
  return {{" 'init/'", {step({.op = Op::Add, .key = "init/", .number = 1})}}, integer};
}

ClientCall handshake(TcpStoreVersion version, std::uint32_t nonce) {
  ClientCall call;
  call.bare = true;
  ClientStep& step = call.steps.emplace_back();
  if (version == TcpStoreVersion::Torch2_2) {
    step.op = Op::Ping;
    encode(step.bytes, version, {.op = Op::Validate});
    encode(step.bytes, version, {.op = Op::Ping, .nonce = nonce | kLongKey});
  } else {  // there is no handshake: something harmless is asked for
    step.op = Op::GetNumKeys;
    encode(step.bytes, version, {.op = Op::GetNumKeys});
  }
  return call;
}

Status check_handshake(TcpStoreVersion version, std::uint32_t nonce, const Reply& reply) {
  std::string bytes;
  if (version == TcpStoreVersion::Torch2_2) {
    if (reply.integer == std::int64_t{nonce | kLongKey}) return Done{};
    store::append(bytes, static_cast<std::uint32_t>(reply.integer));
  } else {
    if (reply.integer >= 0 && reply.integer < kPlausibleKeys) return Done{};
    store::append(bytes, reply.integer);
  }
  return no_store(bytes);
}

std::string_view closing_hint(Op op) {
  switch (op) {
    case Op::Add:
      return " (a store does so when the key holds something other than a number)";
    case Op::Barrier:
      return " (a store does so when the key holds something other than a number, and when it is "
             "older than torch 2.14)";
    case Op::ListKeys:
      return " (a store older than torch 2.14 does not know this request)";
    case Op::QueuePush:
    case Op::QueuePop:
    case Op::QueueLen:
      return " (a store older than torch 2.8, or built without libuv, does not know this request)";
    case Op::Ping:
      return " (a store older than torch 2.5 does not know this request)";
    default:
      return "";
  }
}

std::string to_text(std::chrono::steady_clock::duration duration) {
  using std::chrono::milliseconds;
  const auto limit = std::max(std::chrono::duration_cast<milliseconds>(duration), milliseconds(0));
  return limit < std::chrono::seconds(1) ? std::to_string(limit.count()) + " ms"
                                         : seconds_text(limit);
}

std::string quote_bytes(std::string_view bytes) {
  constexpr std::size_t kLongest = 80;
  std::string_view start = bytes.substr(0, kLongest);
  if (const auto end = start.find_first_of("\r\n"); end != start.npos && end > 0) {
    start = start.substr(0, end);  // of a text: its first line
  }
  std::string text;
  if (std::all_of(start.begin(), start.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    text = "'" + std::string(start) + "'";
  } else {
    text = "0x";
    for (const char c : start) {
      char hex[3];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      text += hex;
    }
  }
  return bytes.size() > start.size() ? text + "..." : text;
}

}  // namespace drun::store
