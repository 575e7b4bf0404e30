// The client's half of the TCPStore protocol as pure functions: requests to bytes, bytes to
// replies. docs/protocol.md has the layouts.
//
// All integers are little endian; a string is a u64 length and its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/store/client.hpp"

namespace drun::store {

enum class Call : std::uint8_t {
  Validate,
  Set,
  CompareSet,
  Get,
  Add,
  Check,
  Wait,
  NumKeys,
  DeleteKey,
  Append,
  MultiGet,
  MultiSet,
  CancelWait,
  Ping,
  QueuePush,
  QueuePop,
  QueueLen,
  ListKeys,
  Barrier
};

// The call's first byte; nullopt: the dialect has no such call.
[[nodiscard]] std::optional<std::uint8_t> opcode(Call call, Dialect dialect);

// The name for users: "compare_set".
[[nodiscard]] std::string_view name(Call call);

// Appends requests to a string.
class RequestWriter {
 public:
  explicit RequestWriter(std::string& out) : out_(out) {}

  RequestWriter& byte(std::uint8_t value);
  RequestWriter& u32(std::uint32_t value);
  RequestWriter& u64(std::uint64_t value);
  RequestWriter& i64(std::int64_t value) { return u64(static_cast<std::uint64_t>(value)); }
  RequestWriter& bytes(std::string_view value);  // with its length

 private:
  std::string& out_;
};

enum class ReplyShape {
  None,     // the call has no reply
  Byte,     // one u8
  Nonce,    // one u32
  Integer,  // one i64
  Value,    // one vector
  Values,   // as many vectors as keys were asked for
  Keys,     // i64 n, n strings
  Popped    // i64 length; a vector if it is above 0
};

struct Reply {
  std::int64_t integer = 0;  // of Byte, Nonce, Integer, Popped
  std::vector<std::string> values;
};

// Reads one reply that arrives in pieces.
class ReplyReader {
 public:
  enum class State { NeedMore, Done, TooLarge, Malformed };

  // `count`: of Values. `max_value_bytes`: a longer vector ends it in TooLarge.
  ReplyReader(ReplyShape shape, std::size_t count, std::size_t max_value_bytes);

  // Takes from `bytes` what belongs to the reply and says in `taken` how much that was; what it
  // leaves must come again, with more behind it.
  State read(std::string_view bytes, std::size_t& taken);

  [[nodiscard]] Reply& reply() { return reply_; }

 private:
  State read_integer(std::string_view bytes, std::size_t& taken);
  State read_value(std::string_view bytes, std::size_t& taken);

  ReplyShape shape_;
  std::size_t max_value_bytes_;
  std::size_t missing_;                 // vectors still to come
  bool integer_missing_;                // the leading integer is still to come
  std::optional<std::uint64_t> value_;  // length of the vector that is being read
  Reply reply_;
};

}  // namespace drun::store
