#include "store/server/tcpstore_handler.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "store/server/turn.hpp"

namespace drun::store::tcpstore {
namespace {

constexpr const char* kNotANumber = "the key's value is not a number";
constexpr const char* kValueTooLong = "value too long";
constexpr const char* kReplyTooLong = "reply too long";
// A value from this size on is not copied, if the socket takes it.
constexpr std::size_t kSentDirectly = 16 * 1024;

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// As strtoll in base 10: white space, a sign, digits; what follows is ignored.
std::optional<std::int64_t> parse_number(std::string_view text) {
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

// A large one from where it is, as far as the client takes it now.
void append_reply(TableClient& client, std::string_view value, std::string& out) {
  append(out, static_cast<std::uint64_t>(value.size()));
  const std::size_t sent = value.size() < kSentDirectly ? 0 : client.send_now(value);
  out.append(value.substr(sent));
}

// Adds to the number in a key (a missing key is 0), wrapping as two's complement does.
struct Sum {
  const char* failure = nullptr;
  std::int64_t value = 0;
};
Sum add(KeyTable& table, std::string_view key, std::int64_t delta, bool quietly) {
  const std::string* text = table.find(key);
  const auto number = text == nullptr ? std::optional<std::int64_t>(0) : parse_number(*text);
  if (!number) return {kNotANumber, 0};
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(*number) +
                                             static_cast<std::uint64_t>(delta));
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  const std::string_view written(digits, static_cast<std::size_t>(end - digits));
  const bool stored = quietly ? table.put_quietly(key, written) : table.put(key, written);
  if (!stored) return {table.refusal(), 0};
  return {nullptr, sum};
}

bool exists(const KeyTable& table, std::string_view key) {
  return table.find(key) != nullptr || table.queue_size(key) > 0;
}

// Stores only if the key holds what is expected. The reply is what the key holds now or, if there
// is none, what was expected.
const char* compare_set(KeyTable& table, const Request& request, std::string& out) {
  const std::string* present = table.find(request.key);
  const bool wins = present ? *present == request.expected : request.expected.empty();
  if (!wins) {
    append_vector(out, present ? std::string_view(*present) : request.expected);
    return nullptr;
  }
  if (!table.put(request.key, request.value)) return table.refusal();
  append_vector(out, request.value);
  return nullptr;
}

const char* multi_get(KeyTable& table, const Request& request, std::size_t longest_reply,
                      std::string& out) {
  const std::size_t start = out.size();
  for (const std::string_view key : request.keys) {
    const std::string* value = table.find(key);
    if (out.size() - start + (value ? value->size() : 0) > longest_reply) return kReplyTooLong;
    append_vector(out, value ? std::string_view(*value) : std::string_view());
  }
  return nullptr;
}

template <typename Visit>  // Visit(string_view key)
void for_each_key(KeyTable& table, const JobScope* scope, Visit visit) {
  const auto in_order = [&visit](const Change& entry) {
    visit(entry.key);
    return true;
  };
  if (scope == nullptr)
    return table.for_each([&](std::string_view key, std::string_view, SessionId) { visit(key); });
  table.list(scope->keys(), in_order);
  table.list(scope->stacks(), in_order);
}

std::int64_t count_keys(KeyTable& table, const JobScope* scope) {
  if (scope == nullptr) return static_cast<std::int64_t>(table.size());
  std::int64_t count = 0;
  for_each_key(table, scope, [&count](std::string_view) { ++count; });
  return count;
}

const char* list_keys(KeyTable& table, const JobScope* scope, std::size_t longest_reply,
                      std::string& out) {
  const std::size_t start = out.size();
  bool too_long = false;
  append(out, count_keys(table, scope));
  for_each_key(table, scope, [&](std::string_view key) {
    too_long = too_long || out.size() - start + key.size() > longest_reply;
    if (!too_long) append_vector(out, key);
  });
  return too_long ? kReplyTooLong : nullptr;
}

// The limit holds for what a key has, however it grew.
const char* append_value(KeyTable& table, const Request& request, const Limits& limits) {
  const std::string* present = table.find(request.key);
  if (present != nullptr && present->size() + request.value.size() > limits.value_bytes)
    return kValueTooLong;
  return table.append(request.key, request.value) ? nullptr : table.refusal();
}

const char* barrier(KeyTable& table, TableClient& client, std::uint64_t wait,
                    const Request& request, std::string& out) {
  const Sum sum = add(table, request.key, 1, true);
  if (sum.failure != nullptr) return sum.failure;
  if (sum.value < request.number)
    return table.wait_for_wake(client, wait, request.key) ? nullptr : table.refusal();
  out.push_back(kStopWaiting);
  table.wake(request.key);
  return nullptr;
}

const char* apply_unpublished(KeyTable& table, TableClient& client, std::uint64_t wait,
                              const Request& request, const Limits& limits, std::string& out,
                              const JobScope* scope) {
  switch (request.op) {
    case Op::Set:
      return table.put(request.key, request.value) ? nullptr : table.refusal();
    case Op::CompareSet:
      return compare_set(table, request, out);
    case Op::Get: {
      const std::string* value = table.find(request.key);
      append_reply(client, value ? std::string_view(*value) : std::string_view(), out);
      return nullptr;
    }
    case Op::Add: {
      const Sum sum = add(table, request.key, request.number, false);
      if (sum.failure == nullptr) append(out, sum.value);
      return sum.failure;
    }
    case Op::Check: {
      bool ready = true;
      for (const std::string_view key : request.keys)
        ready = ready && exists(table, key);
      out.push_back(ready ? kReady : kNotReady);
      return nullptr;
    }
    case Op::Wait:
      switch (table.wait(client, wait, request.keys)) {
        case KeyTable::WaitOutcome::Done:
          out.push_back(kStopWaiting);
          return nullptr;
        case KeyTable::WaitOutcome::Waiting:
          return nullptr;
        case KeyTable::WaitOutcome::OverBudget:
          return table.refusal();
      }
      return nullptr;
    case Op::GetNumKeys:
      append(out, count_keys(table, scope));
      return nullptr;
    case Op::DeleteKey:
      append(out, std::int64_t{table.erase(request.key) ? 1 : 0});
      return nullptr;
    case Op::Append:
      return append_value(table, request, limits);
    case Op::MultiGet:
      return multi_get(table, request, limits.unread_bytes, out);
    case Op::MultiSet:
      for (std::size_t i = 0; i < request.keys.size(); ++i)
        if (!table.put(request.keys[i], request.values[i])) return table.refusal();
      return nullptr;
    case Op::CancelWait:
      table.cancel_waits(client);
      out.push_back(kWaitCanceled);
      return nullptr;
    case Op::Ping:
      append(out, request.nonce);
      return nullptr;
    case Op::QueuePush:
      return table.push(request.key, request.value) ? nullptr : table.refusal();
    case Op::QueuePop: {
      const std::size_t size = table.queue_size(request.key);
      append(out, static_cast<std::int64_t>(size));
      if (size > 0) append_vector(out, table.pop(request.key));
      return nullptr;
    }
    case Op::QueueLen:
      append(out, static_cast<std::int64_t>(table.queue_size(request.key)));
      return nullptr;
    case Op::ListKeys:
      return list_keys(table, scope, limits.unread_bytes, out);
    case Op::Barrier:
      return barrier(table, client, wait, request, out);
    case Op::Validate:
      break;
  }
  return "unknown request";
}

// How many bytes the watches of its keys would be told; once that is more than a turn's work, the
// rest is not counted.
std::size_t bytes_to_tell(const KeyTable& table, const Request& request) {
  constexpr std::size_t kDigits = 20;
  switch (request.op) {
    case Op::Set:
    case Op::CompareSet:
      return table.bytes_to_tell(request.key, request.value.size());
    case Op::Append: {
      const std::string* value = table.find(request.key);
      return table.bytes_to_tell(request.key, request.value.size() + (value ? value->size() : 0));
    }
    case Op::Add:
    case Op::Barrier:
      return table.bytes_to_tell(request.key, kDigits);
    case Op::DeleteKey:
      return table.bytes_to_tell(request.key, 0);
    case Op::MultiSet: {
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < request.keys.size() && bytes <= Turn::kMuch; ++i)
        bytes += table.bytes_to_tell(request.keys[i], request.values[i].size());
      return bytes;
    }
    default:
      return 0;
  }
}

}  // namespace

bool replies_more_than(std::size_t most, const KeyTable& table, const Request& request) {
  constexpr std::size_t kLength = sizeof(std::uint64_t);
  const auto length = [&](std::string_view key) {
    const std::string* value = table.find(key);
    return kLength + (value ? value->size() : 0);
  };
  std::size_t bytes = 0;
  switch (request.op) {
    case Op::Get:
      return length(request.key) > most;
    case Op::CompareSet:
      return std::max(length(request.key),
                      kLength + std::max(request.value.size(), request.expected.size())) > most;
    case Op::QueuePop:
      return table.queue_size(request.key) > 0 &&
             2 * kLength + table.queue_front(request.key).size() > most;
    case Op::MultiGet:
      for (auto key = request.keys.begin(); key != request.keys.end() && bytes <= most; ++key)
        bytes += length(*key);
      return bytes > most;
    case Op::ListKeys:
      bytes = kLength + table.size() * kLength;
      if (bytes <= most)
        table.for_each(
            [&](std::string_view key, std::string_view, SessionId) { bytes += key.size(); });
      return bytes > most;
    default:
      return false;
  }
}

bool takes_much(const KeyTable& table, const Request& request, const JobScope* scope) {
  std::size_t work =
      keys_of(table, request, scope) * Turn::kBytesOfAKey + bytes_to_tell(table, request);
  const auto add_value = [&](std::string_view key) {
    const std::string* value = table.find(key);
    work += value ? value->size() : 0;
  };
  if (request.op == Op::Get || request.op == Op::CompareSet) add_value(request.key);
  if (request.op == Op::MultiGet)
    for (auto key = request.keys.begin(); key != request.keys.end() && work <= Turn::kMuch; ++key)
      add_value(*key);
  return work > Turn::kMuch;
}

const char* apply(KeyTable& table, TableClient& client, std::uint64_t wait, const Request& request,
                  const Limits& limits, std::string& out, const JobScope* scope) {
  const char* failure = apply_unpublished(table, client, wait, request, limits, out, scope);
  table.publish();
  return failure;
}

}  // namespace drun::store::tcpstore
