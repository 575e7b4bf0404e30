// The operations of PyTorch's TCPStore protocol: for each its name, its opcode in every version,
// and the layout of its request and of its reply. docs/protocol.md, section 2, has the same table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "drun/store/tcpstore_version.hpp"

namespace drun::store::tcpstore {

// Numbered as in Torch2_2.
enum class Op : std::uint8_t {
  Validate = 0,
  Set = 1,
  CompareSet = 2,
  Get = 3,
  Add = 4,
  Check = 5,
  Wait = 6,
  GetNumKeys = 7,
  DeleteKey = 8,
  Append = 9,
  MultiGet = 10,
  MultiSet = 11,
  CancelWait = 12,
  Ping = 13,
  QueuePush = 14,
  QueuePop = 15,
  QueueLen = 16,
  ListKeys = 17,
  Barrier = 18
};

// What follows the opcode. Integers are little endian; a string is a u64 length and its bytes.
enum class RequestFields : std::uint8_t {
  None,
  Magic,             // u32 kValidateMagic
  Nonce,             // u32
  Key,               // string
  KeyNumber,         // string, i64
  KeyValue,          // string, string
  KeyExpectedValue,  // string, string, string
  Keys,              // u64 n, n strings
  Pairs              // u64 n, n times two strings
};

enum class ReplyShape : std::uint8_t {
  None,     // the operation has no reply
  Byte,     // one u8
  Nonce,    // one u32
  Integer,  // one i64
  Value,    // one string
  Values,   // as many strings as keys were asked for
  Keys,     // i64 n, n strings
  Popped    // i64 length; a string if it is above 0
};

struct OpRow {
  std::string_view name;                 // for users
  std::array<std::int8_t, 3> opcode_in;  // by TcpStoreVersion; -1: the version has no such request
  RequestFields fields;
  ReplyShape reply;
};

// By Op.
inline constexpr std::array<OpRow, 19> kOps{{
    {"validate", {-1, -1, 0}, RequestFields::Magic, ReplyShape::None},
    {"set", {0, 0, 1}, RequestFields::KeyValue, ReplyShape::None},
    {"compare_set", {1, 1, 2}, RequestFields::KeyExpectedValue, ReplyShape::Value},
    {"get", {2, 2, 3}, RequestFields::Key, ReplyShape::Value},
    {"add", {3, 3, 4}, RequestFields::KeyNumber, ReplyShape::Integer},
    {"check", {4, 4, 5}, RequestFields::Keys, ReplyShape::Byte},
    {"wait", {5, 5, 6}, RequestFields::Keys, ReplyShape::Byte},
    {"num_keys", {6, 6, 7}, RequestFields::None, ReplyShape::Integer},
    // Torch1_13 has WATCH_KEY as 7. Only C++ programs could send it; it is not served.
    {"delete_key", {8, 7, 8}, RequestFields::Key, ReplyShape::Integer},
    {"append", {-1, 8, 9}, RequestFields::KeyValue, ReplyShape::None},
    {"multi_get", {-1, 9, 10}, RequestFields::Keys, ReplyShape::Values},
    {"multi_set", {-1, 10, 11}, RequestFields::Pairs, ReplyShape::None},
    {"cancel_wait", {-1, 11, 12}, RequestFields::None, ReplyShape::Byte},
    {"ping", {-1, -1, 13}, RequestFields::Nonce, ReplyShape::Nonce},
    {"queue_push", {-1, -1, 14}, RequestFields::KeyValue, ReplyShape::None},
    {"queue_pop", {-1, -1, 15}, RequestFields::Key, ReplyShape::Popped},
    {"queue_len", {-1, -1, 16}, RequestFields::Key, ReplyShape::Integer},
    {"list_keys", {-1, -1, 17}, RequestFields::None, ReplyShape::Keys},
    {"barrier", {-1, -1, 18}, RequestFields::KeyNumber, ReplyShape::Byte},
}};

[[nodiscard]] constexpr const OpRow& row_of(Op op) {
  return kOps[static_cast<std::size_t>(op)];
}

// The opcode of a request; nullopt: the version does not have it.
[[nodiscard]] constexpr std::optional<std::uint8_t> opcode_of(TcpStoreVersion version, Op op) {
  const std::int8_t opcode = row_of(op).opcode_in[static_cast<std::size_t>(version)];
  if (opcode < 0) return std::nullopt;
  return static_cast<std::uint8_t>(opcode);
}

namespace detail {

// Operation by version and opcode: kOps the other way round. Op::Validate: there is none, because
// VALIDATE comes first or never.
inline constexpr auto kOpByOpcode = [] {
  std::array<std::array<Op, kOps.size()>, 3> ops{};
  for (std::size_t op = 1; op < kOps.size(); ++op) {
    for (std::size_t version = 0; version < ops.size(); ++version) {
      const std::int8_t opcode = kOps[op].opcode_in[version];
      if (opcode >= 0) ops[version][static_cast<std::size_t>(opcode)] = static_cast<Op>(op);
    }
  }
  return ops;
}();

}  // namespace detail

// What an opcode means in a version; nullopt: unknown there.
[[nodiscard]] constexpr std::optional<Op> op_of(TcpStoreVersion version, std::uint8_t opcode) {
  if (opcode >= kOps.size()) return std::nullopt;
  const Op op = detail::kOpByOpcode[static_cast<std::size_t>(version)][opcode];
  if (op == Op::Validate) return std::nullopt;
  return op;
}

}  // namespace drun::store::tcpstore
