#include "store/protocol/control_protocol.hpp"

#include <algorithm>

#include "store/protocol/bytes.hpp"

namespace drun::store::control {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::uint8_t kEphemeralFlag = 1;

// ---- decoding ----

std::string_view take_string(ByteReader& in) {
  return in.take_bytes(in.take<std::uint32_t>());
}

bool take_bool(ByteReader& in) {
  const auto byte = in.take<std::uint8_t>();
  if (byte > 1) in.fail();
  return byte == 1;
}

OptionalBytes take_optional(ByteReader& in) {
  if (!take_bool(in)) return std::nullopt;
  return take_string(in);
}

Token take_token(ByteReader& in) {
  Token token{};
  const std::string_view bytes = in.take_bytes(kTokenBytes);
  std::copy(bytes.begin(), bytes.end(), token.begin());
  return token;
}

// A list whose items take at least `item_bytes` each: the count is believed only as far as the
// bytes that are there can carry it.
template <typename T, typename TakeItem>
bool take_list(ByteReader& in, std::size_t item_bytes, std::size_t limit, std::vector<T>& items,
               TakeItem take_item) {
  const auto count = in.take<std::uint32_t>();
  if (count > in.rest().size() / item_bytes) in.fail();
  if (!in.ok()) return true;
  if (count > limit) return false;
  items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i)
    items.push_back(take_item(in));
  return true;
}

Guard take_guard(ByteReader& in) {
  Guard guard;
  guard.key = take_string(in);
  guard.expected = take_optional(in);
  return guard;
}

Write take_write(ByteReader& in) {
  Write write;
  write.key = take_string(in);
  const auto flags = in.take<std::uint8_t>();
  if ((flags & ~kEphemeralFlag) != 0) in.fail();
  write.ephemeral = (flags & kEphemeralFlag) != 0;
  write.value = take_optional(in);
  return write;
}

Entry take_entry(ByteReader& in) {
  Entry entry;
  entry.key = take_string(in);
  entry.value = take_optional(in);
  return entry;
}

constexpr std::size_t kStringBytes = 4;
constexpr std::size_t kOptionalBytes = 1;
constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

DecodeStatus finish(const ByteReader& in) {
  return in.ok() && in.rest().empty() ? DecodeStatus::Ok : DecodeStatus::Malformed;
}

// ---- encoding ----

void append_string(std::string& out, std::string_view bytes) {
  append(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes);
}

void append_optional(std::string& out, const OptionalBytes& bytes) {
  out.push_back(bytes ? '\1' : '\0');
  if (bytes) append_string(out, *bytes);
}

void append_token(std::string& out, const Token& token) {
  out.append(reinterpret_cast<const char*>(token.data()), token.size());
}

template <typename T, typename AppendItem>
void append_list(std::string& out, const std::vector<T>& items, AppendItem append_item) {
  append(out, static_cast<std::uint32_t>(items.size()));
  for (const T& item : items)
    append_item(out, item);
}

void append_entries(std::string& out, std::uint64_t revision, const std::vector<Entry>& entries) {
  append(out, revision);
  append_list(out, entries, [](std::string& o, const Entry& entry) {
    append_string(o, entry.key);
    append_optional(o, entry.value);
  });
}

// Appends the body of a message and returns its type.
struct BodyEncoder {
  std::string& out;

  FrameType operator()(const OpenSession& m) const {
    append(out, m.ttl_ms);
    append(out, m.grace_ms);
    return FrameType::OpenSession;
  }
  FrameType operator()(const ResumeSession& m) const {
    append(out, m.session);
    append_token(out, m.token);
    return FrameType::ResumeSession;
  }
  FrameType operator()(const Heartbeat&) const { return FrameType::Heartbeat; }
  FrameType operator()(const Goodbye&) const { return FrameType::Goodbye; }
  FrameType operator()(const Transaction& m) const {
    append_list(out, m.guards, [](std::string& o, const Guard& guard) {
      append_string(o, guard.key);
      append_optional(o, guard.expected);
    });
    append_list(out, m.writes, [](std::string& o, const Write& write) {
      append_string(o, write.key);
      append(o, write.ephemeral ? kEphemeralFlag : std::uint8_t{0});
      append_optional(o, write.value);
    });
    return FrameType::Transaction;
  }
  FrameType operator()(const Watch& m) const {
    append_string(out, m.key);
    out.push_back(m.prefix ? '\1' : '\0');
    return FrameType::Watch;
  }
  FrameType operator()(const Unwatch& m) const {
    append(out, m.watch);
    return FrameType::Unwatch;
  }
  FrameType operator()(const Stats&) const { return FrameType::Stats; }

  FrameType operator()(const Welcome& m) const {
    append(out, m.version);
    append(out, m.frame_bytes);
    append(out, m.key_bytes);
    append(out, m.value_bytes);
    append(out, m.keys_per_request);
    return FrameType::Welcome;
  }
  FrameType operator()(const VersionRefused& m) const {
    append(out, m.lowest);
    append(out, m.highest);
    append_string(out, m.text);
    return FrameType::VersionRefused;
  }
  FrameType operator()(const Done&) const { return FrameType::Done; }
  FrameType operator()(const Session& m) const {
    append(out, m.session);
    append_token(out, m.token);
    append(out, m.ttl_ms);
    append(out, m.grace_ms);
    return FrameType::Session;
  }
  FrameType operator()(const SessionEnded& m) const {
    append(out, static_cast<std::uint8_t>(m.reason));
    return FrameType::SessionEnded;
  }
  FrameType operator()(const Committed& m) const {
    append(out, m.revision);
    return FrameType::Committed;
  }
  FrameType operator()(const Refused& m) const {
    append(out, m.revision);
    append_list(out, m.values, append_optional);
    return FrameType::Refused;
  }
  FrameType operator()(const Snapshot& m) const {
    append_entries(out, m.revision, m.entries);
    return FrameType::Snapshot;
  }
  FrameType operator()(const Changes& m) const {
    append_entries(out, m.revision, m.changes);
    return FrameType::Changes;
  }
  FrameType operator()(const Counters& m) const {
    append_list(out, m.counters, [](std::string& o, const auto& counter) {
      append_string(o, counter.first);
      append(o, counter.second);
    });
    return FrameType::Counters;
  }
  FrameType operator()(const Error& m) const {
    append(out, static_cast<std::uint16_t>(m.code));
    append_string(out, m.text);
    return FrameType::Error;
  }
};

template <typename Message>
void encode_frame(std::string& out, std::uint64_t request, const Message& message) {
  const std::size_t start = out.size();
  append(out, std::uint32_t{0});
  append(out, request);
  out.push_back('\0');
  const FrameType type = std::visit(BodyEncoder{out}, message);
  const auto length = static_cast<std::uint32_t>(out.size() - start - kLengthBytes);
  std::memcpy(out.data() + start, &length, sizeof length);
  out[start + kHeaderBytes - 1] = static_cast<char>(type);
}

}  // namespace

bool may_be_opening(std::string_view bytes) {
  const std::size_t size = std::min(bytes.size(), kMagic.size());
  return bytes.substr(0, size) == kMagic.substr(0, size);
}

Opening decode_opening(std::string_view bytes) {
  ByteReader in(bytes.substr(kMagic.size()));
  Opening opening;
  opening.lowest = in.take<std::uint16_t>();
  opening.highest = in.take<std::uint16_t>();
  return opening;
}

std::optional<std::uint16_t> choose_version(const Opening& opening) {
  const std::uint16_t version = std::min(opening.highest, kHighestVersion);
  if (version < opening.lowest || version < kLowestVersion) return std::nullopt;
  return version;
}

FrameResult next_frame(std::string_view bytes, std::size_t longest) {
  FrameResult result;
  if (bytes.size() < kLengthBytes) {
    result.size = kLengthBytes;  // they may already refuse it
    return result;
  }
  const std::size_t length = load<std::uint32_t>(bytes);
  if (length < kHeaderBytes - kLengthBytes) {
    result.status = FrameStatus::Malformed;
    return result;
  }
  if (length > longest) {
    result.status = FrameStatus::TooLong;
    return result;
  }
  result.size = kLengthBytes + length;
  if (bytes.size() < result.size) return result;
  ByteReader in(bytes.substr(kLengthBytes, length));
  result.status = FrameStatus::Complete;
  result.frame.request = in.take<std::uint64_t>();
  result.frame.type = in.take<std::uint8_t>();
  result.frame.body = in.rest();
  return result;
}

DecodeStatus decode_request(const Frame& frame, std::size_t keys_per_request, Request& request) {
  ByteReader in(frame.body);
  bool within_limit = true;
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::OpenSession: {
      OpenSession& m = request.emplace<OpenSession>();
      m.ttl_ms = in.take<std::uint32_t>();
      m.grace_ms = in.take<std::uint32_t>();
      break;
    }
    case FrameType::ResumeSession: {
      ResumeSession& m = request.emplace<ResumeSession>();
      m.session = in.take<std::uint64_t>();
      m.token = take_token(in);
      break;
    }
    case FrameType::Heartbeat:
      request.emplace<Heartbeat>();
      break;
    case FrameType::Goodbye:
      request.emplace<Goodbye>();
      break;
    case FrameType::Transaction: {
      Transaction& m = request.emplace<Transaction>();
      within_limit =
          take_list(in, kStringBytes + kOptionalBytes, keys_per_request, m.guards, take_guard) &&
          take_list(in, kStringBytes + 1 + kOptionalBytes, keys_per_request, m.writes, take_write);
      break;
    }
    case FrameType::Watch: {
      Watch& m = request.emplace<Watch>();
      m.key = take_string(in);
      m.prefix = take_bool(in);
      break;
    }
    case FrameType::Unwatch:
      request.emplace<Unwatch>().watch = in.take<std::uint64_t>();
      break;
    case FrameType::Stats:
      request.emplace<Stats>();
      break;
    default:
      return DecodeStatus::UnknownType;
  }
  return within_limit ? finish(in) : DecodeStatus::TooManyKeys;
}

DecodeStatus decode_reply(const Frame& frame, Reply& reply) {
  ByteReader in(frame.body);
  const auto take_entries = [&](std::uint64_t& revision, std::vector<Entry>& entries) {
    revision = in.take<std::uint64_t>();
    take_list(in, kStringBytes + kOptionalBytes, kNoLimit, entries, take_entry);
  };
  switch (static_cast<FrameType>(frame.type)) {
    case FrameType::Welcome: {
      Welcome& m = reply.emplace<Welcome>();
      m.version = in.take<std::uint16_t>();
      m.frame_bytes = in.take<std::uint32_t>();
      m.key_bytes = in.take<std::uint32_t>();
      m.value_bytes = in.take<std::uint64_t>();
      m.keys_per_request = in.take<std::uint32_t>();
      break;
    }
    case FrameType::VersionRefused: {
      VersionRefused& m = reply.emplace<VersionRefused>();
      m.lowest = in.take<std::uint16_t>();
      m.highest = in.take<std::uint16_t>();
      m.text = take_string(in);
      break;
    }
    case FrameType::Done:
      reply.emplace<Done>();
      break;
    case FrameType::Session: {
      Session& m = reply.emplace<Session>();
      m.session = in.take<std::uint64_t>();
      m.token = take_token(in);
      m.ttl_ms = in.take<std::uint32_t>();
      m.grace_ms = in.take<std::uint32_t>();
      break;
    }
    case FrameType::SessionEnded: {
      const auto reason = in.take<std::uint8_t>();
      if (reason < 1 || reason > 3) in.fail();
      reply.emplace<SessionEnded>().reason = static_cast<EndReason>(reason);
      break;
    }
    case FrameType::Committed:
      reply.emplace<Committed>().revision = in.take<std::uint64_t>();
      break;
    case FrameType::Refused: {
      Refused& m = reply.emplace<Refused>();
      m.revision = in.take<std::uint64_t>();
      take_list(in, kOptionalBytes, kNoLimit, m.values, take_optional);
      break;
    }
    case FrameType::Snapshot: {
      Snapshot& m = reply.emplace<Snapshot>();
      take_entries(m.revision, m.entries);
      break;
    }
    case FrameType::Changes: {
      Changes& m = reply.emplace<Changes>();
      take_entries(m.revision, m.changes);
      break;
    }
    case FrameType::Counters:
      take_list(in, kStringBytes + 8, kNoLimit, reply.emplace<Counters>().counters,
                [](ByteReader& r) {
                  const std::string_view name = take_string(r);
                  return std::pair(name, r.take<std::uint64_t>());
                });
      break;
    case FrameType::Error: {
      Error& m = reply.emplace<Error>();
      m.code = static_cast<ErrorCode>(in.take<std::uint16_t>());
      m.text = take_string(in);
      break;
    }
    default:
      return DecodeStatus::UnknownType;
  }
  return finish(in);
}

void encode_opening(std::string& out, const Opening& opening) {
  out.append(kMagic);
  append(out, opening.lowest);
  append(out, opening.highest);
}

void encode(std::string& out, std::uint64_t request, const Request& message) {
  encode_frame(out, request, message);
}

void encode(std::string& out, std::uint64_t request, const Reply& message) {
  encode_frame(out, request, message);
}

}  // namespace drun::store::control
