#include "store/protocol/tcpstore_codec.hpp"

#include <algorithm>
#include <utility>

namespace drun::store::tcpstore {
namespace {

constexpr std::size_t kLengthBytes = 8;

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

bool is_list(Op op) {
  const RequestFields fields = row_of(op).fields;
  return fields == RequestFields::Keys || fields == RequestFields::Pairs;
}

bool plain_fields(Fields& fields, const Limits& limits, Request& request) {
  switch (row_of(request.op).fields) {
    case RequestFields::Key:
      return fields.key(request.key, limits);
    case RequestFields::KeyNumber:
      return fields.key(request.key, limits) && fields.integer(request.number);
    case RequestFields::KeyValue:
      return fields.key(request.key, limits) && fields.value(request.value, limits);
    case RequestFields::KeyExpectedValue:
      return fields.key(request.key, limits) && fields.value(request.expected, limits) &&
             fields.value(request.value, limits);
    case RequestFields::Nonce:
      return fields.integer(request.nonce);
    default:  // None; VALIDATE is no request, and lists are not for here
      return true;
  }
}

}  // namespace

// ---- telling versions apart ----

Detection detect_version(std::string_view bytes, const Limits& limits) {
  using Status = Detection::Status;
  if (bytes.empty()) return {};
  const std::size_t compared = std::min(bytes.size(), kHandshake.size());
  if (bytes.substr(0, compared) == kHandshake.substr(0, compared)) {
    if (compared < kHandshake.size()) return {};
    return {Status::Decided, TcpStoreVersion::Torch2_2, kHandshake.size()};
  }
  const std::optional<Op> op =
      op_of(TcpStoreVersion::Torch2_1, static_cast<std::uint8_t>(bytes[0]));
  if (!op || op == Op::CancelWait) return {Status::Rejected, TcpStoreVersion::Torch1_13, 0};
  if (op == Op::GetNumKeys) return {Status::Decided, TcpStoreVersion::Torch1_13, 0};
  if (bytes.size() < 1 + kLengthBytes) return {};
  const auto number = load<std::uint64_t>(bytes.substr(1));
  const bool plausible = number <= (is_list(*op) ? limits.keys_per_request : limits.key_bytes);
  return {plausible ? Status::Decided : Status::Rejected, TcpStoreVersion::Torch1_13, 0};
}

// An old client shows by its opcodes that it is a 2.1: those that 1.13 does not have. One opcode is
// DELETE_KEY in 1.13 and APPEND in 2.1. Clients of 1.13 send nothing more before they have the
// reply, those of 2.1 send the value along: exactly one value behind the key therefore means 2.1.
void Decoder::look_for_2_1(std::string_view bytes, const Limits& limits) {
  const auto opcode = static_cast<std::uint8_t>(bytes[0]);
  const std::optional<Op> in_2_1 = op_of(TcpStoreVersion::Torch2_1, opcode);
  const std::optional<Op> in_1_13 = op_of(TcpStoreVersion::Torch1_13, opcode);
  if (in_2_1 == in_1_13 || !in_2_1) return;
  if (in_1_13) {
    Fields fields(bytes, 1);
    std::string_view ignored;
    const bool has_value = fields.key(ignored, limits) && fields.value(ignored, limits);
    if (!has_value || fields.at() != bytes.size()) return;
  }
  version_ = TcpStoreVersion::Torch2_1;
}

// ---- requests ----

Decoder::Result Decoder::next(std::string_view bytes, const Limits& limits, Request& request) {
  if (version_ == TcpStoreVersion::Torch1_13) look_for_2_1(bytes, limits);
  const std::optional<Op> op = op_of(version_, static_cast<std::uint8_t>(bytes[0]));
  if (!op) return {Status::Refused, 0, "unknown request"};
  request.op = *op;
  if (is_list(*op)) return next_list(bytes, limits, request);
  Fields fields(bytes, 1);
  if (!plain_fields(fields, limits, request)) return fields.failure(limits);
  return {Status::Complete, fields.at(), ""};
}

Decoder::Result Decoder::next_list(std::string_view bytes, const Limits& limits, Request& request) {
  const bool pairs = row_of(request.op).fields == RequestFields::Pairs;
  if (scanned_ == 0) {
    Fields fields(bytes, 1);
    std::uint64_t count = 0;
    if (!fields.integer(count)) return fields.failure(limits);
    if (count > limits.keys_per_request) return {Status::Refused, 0, "too many keys"};
    scanned_ = fields.at();
    fields_left_ = static_cast<std::size_t>(count) * (pairs ? 2 : 1);
  }
  // First look whether all is there; only then take memory for the list.
  Fields scan(bytes, scanned_);
  for (; fields_left_ > 0; --fields_left_) {
    std::string_view ignored;
    const bool is_value = pairs && fields_left_ % 2 == 1;
    const bool there = is_value ? scan.value(ignored, limits) : scan.key(ignored, limits);
    if (!there) return scan.failure(limits);
    scanned_ = scan.at();
  }
  Fields fields(bytes, 1);
  std::uint64_t count = 0;
  (void)fields.integer(count);
  request.keys.resize(static_cast<std::size_t>(count));
  request.values.resize(pairs ? request.keys.size() : 0);
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    (void)fields.key(request.keys[i], limits);
    if (pairs) (void)fields.value(request.values[i], limits);
  }
  return {Status::Complete, std::exchange(scanned_, 0), ""};
}

void encode(std::string& out, TcpStoreVersion version, const Request& request) {
  const RequestFields fields = row_of(request.op).fields;
  append(out, opcode_of(version, request.op).value());
  switch (fields) {
    case RequestFields::None:
      return;
    case RequestFields::Magic:
      return append(out, kValidateMagic);
    case RequestFields::Nonce:
      return append(out, request.nonce);
    case RequestFields::Key:
      return append_vector(out, request.key);
    case RequestFields::KeyNumber:
      append_vector(out, request.key);
      return append(out, request.number);
    case RequestFields::KeyValue:
      append_vector(out, request.key);
      return append_vector(out, request.value);
    case RequestFields::KeyExpectedValue:
      append_vector(out, request.key);
      append_vector(out, request.expected);
      return append_vector(out, request.value);
    case RequestFields::Keys:
    case RequestFields::Pairs:
      append(out, static_cast<std::uint64_t>(request.keys.size()));
      for (std::size_t i = 0; i < request.keys.size(); ++i) {
        append_vector(out, request.keys[i]);
        if (fields == RequestFields::Pairs) append_vector(out, request.values[i]);
      }
      return;
  }
}

// ---- replies ----

ReplyReader::ReplyReader(ReplyShape shape, std::size_t count, std::size_t max_value_bytes)
    : shape_(shape),
      max_value_bytes_(max_value_bytes),
      missing_(shape == ReplyShape::Value    ? 1
               : shape == ReplyShape::Values ? count
                                             : 0),
      integer_missing_(shape != ReplyShape::None && shape != ReplyShape::Value &&
                       shape != ReplyShape::Values) {}

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
  ByteReader in(bytes);
  switch (shape_) {
    case ReplyShape::Byte:
      reply_.integer = in.take<std::uint8_t>();
      break;
    case ReplyShape::Nonce:
      reply_.integer = in.take<std::uint32_t>();
      break;
    default:
      reply_.integer = in.take<std::int64_t>();
  }
  if (!in.ok()) return State::NeedMore;
  taken = bytes.size() - in.rest().size();
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
    if (bytes.size() - taken < kLengthBytes) return State::NeedMore;
    value_ = load<std::uint64_t>(bytes.substr(taken));
    if (*value_ > max_value_bytes_) return State::TooLarge;
    taken += kLengthBytes;
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

}  // namespace drun::store::tcpstore
