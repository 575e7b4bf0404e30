// Messages of the control protocol to bytes.
#include <cstring>

#include "store/protocol/bytes.hpp"
#include "store/protocol/control_protocol.hpp"

namespace drun::store::control {
namespace {

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

void append_place(std::string& out, const Place& place) {
  append(out, place.electorate.era);
  append(out, place.electorate.round);
  append(out, place.rank);
  append(out, place.nodes);
  append(out, place.casting);
}

void append_vote(std::string& out, const Vote& vote) {
  const bool knows_settled = vote.settled.nodes > 0;
  out.push_back(knows_settled ? '\1' : '\0');
  if (knows_settled) append_place(out, vote.settled);
  append_list(out, vote.later, append_place);
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
  FrameType operator()(const Pulse& m) const {
    append_string(out, m.job);
    append_vote(out, m.vote);
    return FrameType::Pulse;
  }
  FrameType operator()(const Confirm& m) const {
    append(out, m.stamp);
    return FrameType::Confirm;
  }
  FrameType operator()(const OpenSuccessor& m) const {
    append(out, m.ttl_ms);
    append(out, m.grace_ms);
    append(out, m.generation);
    append_string(out, m.job);
    append_vote(out, m.vote);
    append(out, m.silent_ms);
    return FrameType::OpenSuccessor;
  }
  FrameType operator()(const Gone& m) const {
    append(out, m.generation);
    append_string(out, m.job);
    append_vote(out, m.vote);
    return FrameType::Gone;
  }
  FrameType operator()(const Find& m) const {
    append(out, m.generation);
    append_string(out, m.host);
    append(out, m.port);
    append_string(out, m.job);
    append(out, m.founders);
    return FrameType::Find;
  }
  FrameType operator()(const LastWords& m) const {
    append_string(out, m.prefix);
    return FrameType::LastWords;
  }

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
  FrameType operator()(const Pulsed& m) const {
    append(out, m.generation);
    append(out, m.age_ms);
    append_place(out, m.settled);
    append(out, m.stamp);
    return FrameType::Pulsed;
  }
  FrameType operator()(const Moved& m) const {
    append(out, m.generation);
    append_string(out, m.host);
    append(out, m.port);
    return FrameType::Moved;
  }
  FrameType operator()(const Heard& m) const {
    append_list(out, m.entries, [](std::string& o, const Heard::Entry& entry) {
      append_string(o, entry.key);
      append(o, entry.age_ms);
      append(o, entry.lease_ms);
    });
    return FrameType::Heard;
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

void set_request(std::string& frame, std::uint64_t request) {
  std::memcpy(frame.data() + sizeof(std::uint32_t), &request, sizeof request);
}

}  // namespace drun::store::control
