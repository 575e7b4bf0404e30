#include "store/protocol/tcpstore_protocol.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace drun::store::tcpstore {
namespace {

constexpr std::size_t kLengthBytes = 8;

// The requests of each dialect, by opcode.
constexpr std::array kOpsOfA{Op::Set, Op::CompareSet, Op::Get, Op::Add, Op::Check, Op::Wait,
                             Op::GetNumKeys,
                             // WATCH_KEY in A, which only C++ programs could send; DELETE_KEY in B
                             Op::DeleteKey, Op::DeleteKey};
constexpr std::array kOpsOfB{Op::Set,    Op::CompareSet, Op::Get,        Op::Add,
                             Op::Check,  Op::Wait,       Op::GetNumKeys, Op::DeleteKey,
                             Op::Append, Op::MultiGet,   Op::MultiSet,   Op::CancelWait};
constexpr std::uint8_t kOpcodeOfDeleteInB = 7;
constexpr std::uint8_t kOpcodeOfDeleteInA = 8;
constexpr std::uint8_t kFirstOpcodeOnlyInB = 9;

// Walks over the fields of one request. Everything is refused or asked for before it is touched.
class Fields {
 public:
  Fields(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  template <typename T>
  bool integer(T& value) {
    if (!available(sizeof(T))) return false;
    value = load_at<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return true;
  }

  bool vector(std::string_view& out, std::size_t limit, const char* reason) {
    if (!available(kLengthBytes)) return false;
    const auto length = load_at<std::uint64_t>(bytes_.data() + at_);
    if (length > limit) {
      reason_ = reason;
      return false;
    }
    if (!available(kLengthBytes + static_cast<std::size_t>(length))) return false;
    out = {bytes_.data() + at_ + kLengthBytes, static_cast<std::size_t>(length)};
    at_ += kLengthBytes + static_cast<std::size_t>(length);
    return true;
  }

  bool key(std::string_view& out, const Limits& limits) {
    return vector(out, limits.key_bytes, "key too long");
  }
  bool value(std::string_view& out, const Limits& limits) {
    return vector(out, limits.value_bytes, "value too long");
  }

  [[nodiscard]] std::size_t at() const { return at_; }
  // What ended the walk: a reason, or too few bytes.
  [[nodiscard]] Decoder::Result failure(const Limits& limits) const {
    using Status = Decoder::Status;
    if (reason_ != nullptr) return {Status::Refused, 0, reason_};
    if (needed_ > limits.request_bytes) return {Status::Refused, 0, "request too long"};
    return {Status::NeedMore, needed_, ""};
  }

 private:
  bool available(std::size_t size) {
    if (bytes_.size() - at_ >= size) return true;
    needed_ = at_ + size;
    return false;
  }

  std::string_view bytes_;
  std::size_t at_;
  std::size_t needed_ = 0;
  const char* reason_ = nullptr;
};

bool is_pair_list(Op op) {
  return op == Op::MultiSet;
}

bool is_list(Op op) {
  return op == Op::Check || op == Op::Wait || op == Op::MultiGet || op == Op::MultiSet;
}

// Field `index` of a list: keys, or for pairs key and value in turn.
bool list_field(Fields& fields, bool value, const Limits& limits, std::string_view& out) {
  return value ? fields.value(out, limits) : fields.key(out, limits);
}

bool plain_fields(Fields& fields, const Limits& limits, Request& request) {
  switch (request.op) {
    case Op::Set:
    case Op::Append:
    case Op::QueuePush:
      return fields.key(request.key, limits) && fields.value(request.value, limits);
    case Op::CompareSet:
      return fields.key(request.key, limits) && fields.value(request.expected, limits) &&
             fields.value(request.value, limits);
    case Op::Get:
    case Op::DeleteKey:
    case Op::QueuePop:
    case Op::QueueLen:
      return fields.key(request.key, limits);
    case Op::Add:
    case Op::Barrier:
      return fields.key(request.key, limits) && fields.integer(request.number);
    case Op::Ping:
      return fields.integer(request.nonce);
    default:  // GETNUMKEYS, CANCEL_WAIT, LIST_KEYS have none; lists are not for here
      return true;
  }
}

}  // namespace

std::optional<Op> op_of(Dialect dialect, std::uint8_t opcode) {
  switch (dialect) {
    case Dialect::A:
      if (opcode < kOpsOfA.size()) return kOpsOfA[opcode];
      break;
    case Dialect::B:
      if (opcode < kOpsOfB.size()) return kOpsOfB[opcode];
      break;
    case Dialect::C:
      if (opcode >= std::uint8_t{1} && opcode <= static_cast<std::uint8_t>(Op::Barrier))
        return static_cast<Op>(opcode);
      break;
  }
  return std::nullopt;
}

std::optional<std::uint8_t> opcode_of(Dialect dialect, Op op) {
  if (dialect == Dialect::C) return static_cast<std::uint8_t>(op);
  if (dialect == Dialect::A && op == Op::DeleteKey) return kOpcodeOfDeleteInA;
  for (std::uint8_t opcode = 0; op_of(dialect, opcode); ++opcode)
    if (op_of(dialect, opcode) == op) return opcode;
  return std::nullopt;
}

Detection detect_dialect(std::string_view bytes, const Limits& limits) {
  using Status = Detection::Status;
  if (bytes.empty()) return {};
  const auto opcode = static_cast<std::uint8_t>(bytes[0]);
  const std::size_t compared = std::min(bytes.size(), kHandshake.size());
  if (bytes.substr(0, compared) == kHandshake.substr(0, compared)) {
    if (compared < kHandshake.size()) return {};
    return {Status::Decided, Dialect::C, kHandshake.size()};
  }
  const std::optional<Op> op = op_of(Dialect::B, opcode);
  if (!op || op == Op::CancelWait) return {Status::Rejected, Dialect::A, 0};
  if (op == Op::GetNumKeys) return {Status::Decided, Dialect::A, 0};
  if (bytes.size() < 1 + kLengthBytes) return {};
  const auto number = load<std::uint64_t>(bytes.substr(1));
  const bool plausible = number <= (is_list(*op) ? limits.keys_per_request : limits.key_bytes);
  return {plausible ? Status::Decided : Status::Rejected, Dialect::A, 0};
}

// An old client shows by its opcodes that it is a 2.1: A knows none above 8, and its 7 comes from
// C++ programs alone. Opcode 8 is DELETE_KEY in A and APPEND in B. Clients of A send nothing more
// before they have the reply, those of B send the value along: exactly one value behind the key
// therefore means B.
void Decoder::look_for_b(std::string_view bytes, const Limits& limits) {
  const auto opcode = static_cast<std::uint8_t>(bytes[0]);
  if (opcode == kOpcodeOfDeleteInB || opcode >= kFirstOpcodeOnlyInB) {
    if (op_of(Dialect::B, opcode)) dialect_ = Dialect::B;
  } else if (opcode == kOpcodeOfDeleteInA) {
    Fields fields(bytes, 1);
    std::string_view ignored;
    if (fields.key(ignored, limits) && fields.value(ignored, limits) && fields.at() == bytes.size())
      dialect_ = Dialect::B;
  }
}

Decoder::Result Decoder::next(std::string_view bytes, const Limits& limits, Request& request) {
  if (dialect_ == Dialect::A) look_for_b(bytes, limits);
  const std::optional<Op> op = op_of(dialect_, static_cast<std::uint8_t>(bytes[0]));
  if (!op) return {Status::Refused, 0, "unknown request"};
  request.op = *op;
  if (!is_list(*op)) {
    Fields fields(bytes, 1);
    if (!plain_fields(fields, limits, request)) return fields.failure(limits);
    return {Status::Complete, fields.at(), ""};
  }

  const std::size_t fields_per_item = is_pair_list(*op) ? 2 : 1;
  if (scanned_ == 0) {
    Fields fields(bytes, 1);
    std::uint64_t count = 0;
    if (!fields.integer(count)) return fields.failure(limits);
    if (count > limits.keys_per_request) return {Status::Refused, 0, "too many keys"};
    scanned_ = fields.at();
    fields_left_ = static_cast<std::size_t>(count) * fields_per_item;
  }
  // First look whether all is there; only then take memory for the list.
  Fields scan(bytes, scanned_);
  for (; fields_left_ > 0; --fields_left_) {
    std::string_view ignored;
    const bool value = fields_per_item == 2 && fields_left_ % 2 == 1;
    if (!list_field(scan, value, limits, ignored)) return scan.failure(limits);
    scanned_ = scan.at();
  }
  Fields fields(bytes, 1);
  std::uint64_t count = 0;
  (void)fields.integer(count);
  request.keys.resize(static_cast<std::size_t>(count));
  request.values.resize(fields_per_item == 2 ? request.keys.size() : 0);
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    (void)list_field(fields, false, limits, request.keys[i]);
    if (fields_per_item == 2) (void)list_field(fields, true, limits, request.values[i]);
  }
  return {Status::Complete, std::exchange(scanned_, 0), ""};
}

void encode(std::string& out, Dialect dialect, const Request& request) {
  append(out, opcode_of(dialect, request.op).value());
  switch (request.op) {
    case Op::Validate:
      append(out, kValidateMagic);
      break;
    case Op::Set:
    case Op::Append:
    case Op::QueuePush:
      append_vector(out, request.key);
      append_vector(out, request.value);
      break;
    case Op::CompareSet:
      append_vector(out, request.key);
      append_vector(out, request.expected);
      append_vector(out, request.value);
      break;
    case Op::Get:
    case Op::DeleteKey:
    case Op::QueuePop:
    case Op::QueueLen:
      append_vector(out, request.key);
      break;
    case Op::Add:
    case Op::Barrier:
      append_vector(out, request.key);
      append(out, request.number);
      break;
    case Op::Ping:
      append(out, request.nonce);
      break;
    case Op::Check:
    case Op::Wait:
    case Op::MultiGet:
    case Op::MultiSet:
      append(out, static_cast<std::uint64_t>(request.keys.size()));
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        append_vector(out, request.keys[i]);
        if (request.op == Op::MultiSet) append_vector(out, request.values[i]);
      }
      break;
    case Op::GetNumKeys:
    case Op::CancelWait:
    case Op::ListKeys:
      break;
  }
}

}  // namespace drun::store::tcpstore
