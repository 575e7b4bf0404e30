#include "store/client/client_calls.hpp"

#include <algorithm>
#include <cstdio>

#include "drun/store/errors.hpp"

namespace drun::store {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;
// A store with more keys than this has not been seen; "HTTP/1.1" as a number is far above.
constexpr std::int64_t kPlausibleKeys = std::int64_t{1} << 40;
// A server of dialect A takes C's greeting for a SET. With this byte in the nonce the key that it
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

// Appends to a request, unless the dialect has none.
class Tail {
 public:
  explicit Tail(ClientStep& step) : step_(step), writer_(step.bytes) {}
  Tail& bytes(std::string_view value) {
    if (!step_.bytes.empty()) writer_.bytes(value);
    return *this;
  }
  Tail& number(std::uint64_t value) {
    if (!step_.bytes.empty()) writer_.u64(value);
    return *this;
  }

 private:
  ClientStep& step_;
  RequestWriter writer_;
};

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

ClientCalls::ClientCalls(Dialect dialect, const ClientOptions& options) : dialect_(dialect) {
  if (!options.raw_keys) prefix_ = "/";
  if (!options.prefix.empty()) prefix_.append(options.prefix).append("/");
}

ClientStep ClientCalls::step(Call call, ReplyShape shape) const {
  ClientStep result{call, shape, 0, {}};
  if (const auto code = opcode(call, dialect_)) RequestWriter(result.bytes).byte(*code);
  return result;
}

ClientStep ClientCalls::keyed(Call call, ReplyShape shape, std::string_view key) const {
  ClientStep result = step(call, shape);
  Tail(result).bytes(prefix_ + std::string(key));
  return result;
}

ClientStep ClientCalls::keyed(Call call, ReplyShape shape, const Keys& keys) const {
  ClientStep result = step(call, shape);
  result.count = keys.size();
  Tail tail(result);
  tail.number(keys.size());
  for (const std::string& key : keys)
    tail.bytes(prefix_ + key);
  return result;
}

TypedCall<Done> ClientCalls::set(std::string_view key, std::string_view value) const {
  ClientStep set = keyed(Call::Set, ReplyShape::None, key);
  Tail(set).bytes(value);
  return {{about(key), {std::move(set)}}, nothing};
}

TypedCall<std::string> ClientCalls::get(std::string_view key) const {
  return {{about(key),
           {keyed(Call::Wait, ReplyShape::Byte, Keys{std::string(key)}),
            keyed(Call::Get, ReplyShape::Value, key)}},
          value};
}

TypedCall<std::optional<std::string>> ClientCalls::try_get(std::string_view key) const {
  return {{about(key),
           {keyed(Call::Check, ReplyShape::Byte, Keys{std::string(key)}),
            keyed(Call::Get, ReplyShape::Value, key)}},
          value_if_any};
}

TypedCall<std::int64_t> ClientCalls::add(std::string_view key, std::int64_t amount) const {
  ClientStep add = keyed(Call::Add, ReplyShape::Integer, key);
  Tail(add).number(static_cast<std::uint64_t>(amount));
  return {{about(key), {std::move(add)}}, integer};
}

TypedCall<std::string> ClientCalls::compare_set(std::string_view key, std::string_view expected,
                                                std::string_view desired) const {
  ClientStep compare_set = keyed(Call::CompareSet, ReplyShape::Value, key);
  Tail(compare_set).bytes(expected).bytes(desired);
  return {{about(key), {std::move(compare_set)}}, value};
}

TypedCall<bool> ClientCalls::check(const Keys& keys) const {
  return {{about(keys), {keyed(Call::Check, ReplyShape::Byte, keys)}},
          [](Reply& reply) { return reply.integer == 0; }};
}

TypedCall<Done> ClientCalls::wait(const Keys& keys) const {
  return {{about(keys), {keyed(Call::Wait, ReplyShape::Byte, keys)}}, nothing};
}

TypedCall<std::int64_t> ClientCalls::num_keys() const {
  return {{"", {step(Call::NumKeys, ReplyShape::Integer)}}, integer};
}

TypedCall<bool> ClientCalls::delete_key(std::string_view key) const {
  return {{about(key), {keyed(Call::DeleteKey, ReplyShape::Integer, key)}},
          [](Reply& reply) { return reply.integer > 0; }};
}

TypedCall<Done> ClientCalls::append(std::string_view key, std::string_view value) const {
  ClientStep append = keyed(Call::Append, ReplyShape::None, key);
  Tail(append).bytes(value);
  return {{about(key), {std::move(append)}}, nothing};
}

TypedCall<std::vector<std::string>> ClientCalls::multi_get(const Keys& keys) const {
  return {{about(keys),
           {keyed(Call::Wait, ReplyShape::Byte, keys),
            keyed(Call::MultiGet, ReplyShape::Values, keys)}},
          values};
}

TypedCall<Done> ClientCalls::multi_set(const Pairs& keys_and_values) const {
  ClientStep multi_set = step(Call::MultiSet, ReplyShape::None);
  Tail tail(multi_set);
  tail.number(keys_and_values.size());
  for (const auto& [key, value] : keys_and_values)
    tail.bytes(prefix_ + key).bytes(value);
  return {{"", {std::move(multi_set)}}, nothing};
}

TypedCall<Done> ClientCalls::ping() const {
  ClientStep ping = step(Call::Ping, ReplyShape::Nonce);
  if (!ping.bytes.empty()) RequestWriter(ping.bytes).u32(0);
  return {{"", {std::move(ping)}}, nothing};
}

TypedCall<Done> ClientCalls::queue_push(std::string_view queue, std::string_view value) const {
  ClientStep push = keyed(Call::QueuePush, ReplyShape::None, queue);
  Tail(push).bytes(value);
  return {{about(queue), {std::move(push)}}, nothing};
}

TypedCall<std::optional<std::string>> ClientCalls::queue_pop(std::string_view queue) const {
  return {{about(queue),
           {keyed(Call::Wait, ReplyShape::Byte, Keys{std::string(queue)}),
            keyed(Call::QueuePop, ReplyShape::Popped, queue)}},
          value_if_any};
}

TypedCall<std::optional<std::string>> ClientCalls::queue_try_pop(std::string_view queue) const {
  return {{about(queue), {keyed(Call::QueuePop, ReplyShape::Popped, queue)}}, value_if_any};
}

TypedCall<std::int64_t> ClientCalls::queue_len(std::string_view queue) const {
  return {{about(queue), {keyed(Call::QueueLen, ReplyShape::Integer, queue)}}, integer};
}

TypedCall<std::vector<std::string>> ClientCalls::list_keys() const {
  return {{"", {step(Call::ListKeys, ReplyShape::Keys)}}, [prefix = prefix_](Reply& reply) {
            std::vector<std::string> keys;
            for (const std::string& key : reply.values) {
              if (key.starts_with(prefix)) keys.push_back(key.substr(prefix.size()));
            }
            return keys;
          }};
}

TypedCall<Done> ClientCalls::barrier(std::string_view key, std::int64_t world_size) const {
  ClientStep barrier = keyed(Call::Barrier, ReplyShape::Byte, key);
  Tail(barrier).number(static_cast<std::uint64_t>(world_size));
  return {{about(key), {std::move(barrier)}}, nothing};
}

TypedCall<std::int64_t> ClientCalls::announce() const {
  ClientStep add = step(Call::Add, ReplyShape::Integer);
  Tail(add).bytes("init/").number(1);
  return {{" 'init/'", {std::move(add)}}, integer};
}

ClientCall greeting(Dialect dialect, std::uint32_t nonce) {
  ClientCall call;
  call.bare = true;
  ClientStep& step = call.steps.emplace_back();
  RequestWriter writer(step.bytes);
  if (dialect == Dialect::C) {
    step.call = Call::Ping;
    step.shape = ReplyShape::Nonce;
    writer.byte(*opcode(Call::Validate, dialect)).u32(kMagic);
    writer.byte(*opcode(Call::Ping, dialect)).u32(nonce | kLongKey);
  } else {  // there is no greeting: something harmless is asked for
    step.call = Call::NumKeys;
    step.shape = ReplyShape::Integer;
    writer.byte(*opcode(Call::NumKeys, dialect));
  }
  return call;
}

Status check_greeting(Dialect dialect, std::uint32_t nonce, const Reply& reply) {
  std::string bytes;
  if (dialect == Dialect::C) {
    if (reply.integer == std::int64_t{nonce | kLongKey}) return Done{};
    RequestWriter(bytes).u32(static_cast<std::uint32_t>(reply.integer));
  } else {
    if (reply.integer >= 0 && reply.integer < kPlausibleKeys) return Done{};
    RequestWriter(bytes).i64(reply.integer);
  }
  return no_store(bytes);
}

std::string_view closing_hint(Call call) {
  switch (call) {
    case Call::Add:
      return " (a store does so when the key holds something other than a number)";
    case Call::Barrier:
      return " (a store does so when the key holds something other than a number, and when it is "
             "older than torch 2.14)";
    case Call::ListKeys:
      return " (a store older than torch 2.14 does not know this request)";
    case Call::QueuePush:
    case Call::QueuePop:
    case Call::QueueLen:
      return " (a store older than torch 2.8, or built without libuv, does not know this request)";
    case Call::Ping:
      return " (a store older than torch 2.5 does not know this request)";
    default:
      return "";
  }
}

std::string to_text(std::chrono::steady_clock::duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (ms < 1000) return std::to_string(std::max<decltype(ms)>(ms, 0)) + " ms";
  const auto tenths = (ms + 50) / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) +
         " s";
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
