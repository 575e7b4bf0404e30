#include "store/protocol/control_protocol.hpp"

#include <algorithm>

#include "store/protocol/bytes.hpp"

namespace drun::store::control {
namespace {

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

Place take_place(ByteReader& in) {
  Place place;
  place.electorate.era = in.take<std::uint64_t>();
  place.electorate.round = in.take<std::uint64_t>();
  place.rank = in.take<std::uint32_t>();
  place.nodes = in.take<std::uint32_t>();
  place.casting = in.take<std::uint32_t>();
  return place;
}

constexpr std::size_t kPlaceBytes = 28;

// A higher one follows, some day.
std::uint64_t take_generation(ByteReader& in) {
  const auto generation = in.take<std::uint64_t>();
  if (generation > kHighestGeneration) in.fail();
  return generation;
}

Vote take_vote(ByteReader& in) {
  Vote vote;
  if (take_bool(in)) vote.settled = take_place(in);
  if (!take_list(in, kPlaceBytes, kMostPlaces, vote.later, take_place) || !is_sound(vote))
    in.fail();
  return vote;
}

constexpr std::size_t kStringBytes = 4;
constexpr std::size_t kOptionalBytes = 1;
constexpr std::size_t kNoLimit = static_cast<std::size_t>(-1);

DecodeStatus finish(const ByteReader& in) {
  return in.ok() && in.rest().empty() ? DecodeStatus::Ok : DecodeStatus::Malformed;
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
    case FrameType::Pulse: {
      Pulse& m = request.emplace<Pulse>();
      m.job = take_string(in);
      m.vote = take_vote(in);
      break;
    }
    case FrameType::Confirm:
      request.emplace<Confirm>().stamp = in.take<std::uint64_t>();
      break;
    case FrameType::OpenSuccessor: {
      OpenSuccessor& m = request.emplace<OpenSuccessor>();
      m.ttl_ms = in.take<std::uint32_t>();
      m.grace_ms = in.take<std::uint32_t>();
      m.generation = take_generation(in);
      m.job = take_string(in);
      m.vote = take_vote(in);
      m.silent_ms = in.take<std::uint32_t>();
      break;
    }
    case FrameType::Gone: {
      Gone& m = request.emplace<Gone>();
      m.generation = take_generation(in);
      m.job = take_string(in);
      m.vote = take_vote(in);
      break;
    }
    case FrameType::Find: {
      Find& m = request.emplace<Find>();
      m.generation = take_generation(in);
      m.host = take_string(in);
      m.port = in.take<std::uint16_t>();
      m.job = take_string(in);
      m.founders = in.take<std::uint64_t>();
      break;
    }
    case FrameType::LastWords:
      request.emplace<LastWords>().prefix = take_string(in);
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
    case FrameType::Pulsed: {
      Pulsed& m = reply.emplace<Pulsed>();
      m.generation = in.take<std::uint64_t>();
      m.age_ms = in.take<std::uint32_t>();
      m.settled = take_place(in);
      m.stamp = in.take<std::uint64_t>();
      break;
    }
    case FrameType::Moved: {
      Moved& m = reply.emplace<Moved>();
      m.generation = take_generation(in);
      m.host = take_string(in);
      m.port = in.take<std::uint16_t>();
      break;
    }
    case FrameType::Heard:
      take_list(in, kStringBytes + 8, kNoLimit, reply.emplace<Heard>().entries, [](ByteReader& r) {
        Heard::Entry entry;
        entry.key = take_string(r);
        entry.age_ms = r.take<std::uint32_t>();
        entry.lease_ms = r.take<std::uint32_t>();
        return entry;
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

}  // namespace drun::store::control
