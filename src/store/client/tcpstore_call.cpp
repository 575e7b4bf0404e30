#include "store/client/tcpstore_call.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace drun::store {
namespace {

// Opcode by dialect; -1: the dialect has no such call.
struct Row {
  std::string_view name;
  std::array<int, 3> opcode;  // A, B, C
};

constexpr std::array<Row, 19> kCalls = {{
    {"validate", {-1, -1, 0}},
    {"set", {0, 0, 1}},
    {"compare_set", {1, 1, 2}},
    {"get", {2, 2, 3}},
    {"add", {3, 3, 4}},
    {"check", {4, 4, 5}},
    {"wait", {5, 5, 6}},
    {"num_keys", {6, 6, 7}},
    {"delete_key", {8, 7, 8}},
    {"append", {-1, 8, 9}},
    {"multi_get", {-1, 9, 10}},
    {"multi_set", {-1, 10, 11}},
    {"cancel_wait", {-1, 11, 12}},
    {"ping", {-1, -1, 13}},
    {"queue_push", {-1, -1, 14}},
    {"queue_pop", {-1, -1, 15}},
    {"queue_len", {-1, -1, 16}},
    {"list_keys", {-1, -1, 17}},
    {"barrier", {-1, -1, 18}},
}};

const Row& row(Call call) {
  return kCalls[static_cast<std::size_t>(call)];
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

std::size_t integer_size(ReplyShape shape) {
  switch (shape) {
    case ReplyShape::Byte:
      return 1;
    case ReplyShape::Nonce:
      return 4;
    default:
      return 8;
  }
}

bool starts_with_integer(ReplyShape shape) {
  return shape != ReplyShape::None && shape != ReplyShape::Value && shape != ReplyShape::Values;
}

}  // namespace

std::optional<std::uint8_t> opcode(Call call, Dialect dialect) {
  const int code = row(call).opcode[static_cast<std::size_t>(dialect)];
  if (code < 0) return std::nullopt;
  return static_cast<std::uint8_t>(code);
}

std::string_view name(Call call) {
  return row(call).name;
}

RequestWriter& RequestWriter::byte(std::uint8_t value) {
  out_.push_back(static_cast<char>(value));
  return *this;
}

RequestWriter& RequestWriter::u32(std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    byte(static_cast<std::uint8_t>(value >> shift));
  return *this;
}

RequestWriter& RequestWriter::u64(std::uint64_t value) {
  for (unsigned shift = 0; shift < 64; shift += 8)
    byte(static_cast<std::uint8_t>(value >> shift));
  return *this;
}

RequestWriter& RequestWriter::bytes(std::string_view value) {
  u64(value.size());
  out_.append(value);
  return *this;
}

ReplyReader::ReplyReader(ReplyShape shape, std::size_t count, std::size_t max_value_bytes)
    : shape_(shape),
      max_value_bytes_(max_value_bytes),
      missing_(shape == ReplyShape::Value    ? 1
               : shape == ReplyShape::Values ? count
                                             : 0),
      integer_missing_(starts_with_integer(shape)) {}

ReplyReader::State ReplyReader::read(std::string_view bytes, std::size_t& taken) {
  taken = 0;
  if (integer_missing_) {
    const State state = read_integer(bytes, taken);
    if (state != State::Done) return state;
  }
  while (missing_ > 0) {
    const State state = read_value(bytes, taken);
    if (state != State::Done) return state;
  }
  return State::Done;
}

ReplyReader::State ReplyReader::read_integer(std::string_view bytes, std::size_t& taken) {
  const std::size_t size = integer_size(shape_);
  if (bytes.size() < size) return State::NeedMore;
  reply_.integer = static_cast<std::int64_t>(little_endian(bytes.substr(0, size)));
  taken = size;
  integer_missing_ = false;
  const bool counts = shape_ == ReplyShape::Keys || shape_ == ReplyShape::Popped;
  if (counts && reply_.integer < 0) return State::Malformed;
  if (shape_ == ReplyShape::Keys) missing_ = static_cast<std::size_t>(reply_.integer);
  if (shape_ == ReplyShape::Popped) missing_ = reply_.integer > 0 ? 1 : 0;
  return State::Done;
}

// A long value is taken as it comes, so that nothing is allocated for what is only announced.
ReplyReader::State ReplyReader::read_value(std::string_view bytes, std::size_t& taken) {
  if (!value_) {
    if (bytes.size() - taken < 8) return State::NeedMore;
    value_ = little_endian(bytes.substr(taken, 8));
    if (*value_ > max_value_bytes_) return State::TooLarge;
    taken += 8;
    reply_.values.emplace_back();
  }
  std::string& value = reply_.values.back();
  const std::size_t wanted = static_cast<std::size_t>(*value_) - value.size();
  const std::size_t here = std::min(wanted, bytes.size() - taken);
  value.append(bytes.substr(taken, here));
  taken += here;
  if (here < wanted) return State::NeedMore;
  value_.reset();
  --missing_;
  return State::Done;
}

}  // namespace drun::store
