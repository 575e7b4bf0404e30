// drun's control protocol as pure functions between bytes and messages, for both ends.
// docs/protocol.md, section 1, has the byte layouts and what the messages mean.
//
// Messages hold views: those that were decoded point into the bytes they came from, those to be
// encoded into the caller's strings. Encoders append to `out`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "store/protocol/vote.hpp"

namespace drun::store::control {

inline constexpr std::string_view kMagic{
    "\xD5"
    "drun\r\n\0",
    8};
inline constexpr std::uint16_t kLowestVersion = 1;
inline constexpr std::uint16_t kHighestVersion = 3;
inline constexpr std::size_t kOpeningBytes = 12;  // magic, u16 lowest, u16 highest
inline constexpr std::size_t kLengthBytes = 4;    // u32 length of the rest
inline constexpr std::size_t kHeaderBytes = 13;   // u32 length of the rest, u64 request id, u8 type
inline constexpr std::size_t kTokenBytes = 16;
inline constexpr std::uint64_t kHighestGeneration = 0xFFFFFFFF;  // that a client has been at
inline constexpr std::uint8_t kEphemeralFlag = 1;                // of a write

enum class FrameType : std::uint8_t {
  OpenSession = 0x01,
  ResumeSession = 0x02,
  Heartbeat = 0x03,
  Goodbye = 0x04,
  Transaction = 0x05,
  Watch = 0x08,
  Unwatch = 0x09,
  Stats = 0x0C,
  Pulse = 0x0E,
  Confirm = 0x0F,
  OpenSuccessor = 0x10,
  Gone = 0x11,
  Find = 0x12,
  LastWords = 0x13,

  Welcome = 0x80,
  VersionRefused = 0x81,
  Done = 0x82,
  Session = 0x83,
  SessionEnded = 0x84,
  Committed = 0x85,
  Refused = 0x86,
  Snapshot = 0x89,
  Changes = 0x8A,
  Counters = 0x8B,
  Pulsed = 0x8D,
  Moved = 0x8E,
  Heard = 0x8F,
  Error = 0xFF
};

using Token = std::array<std::uint8_t, kTokenBytes>;
using OptionalBytes = std::optional<std::string_view>;

// ---- requests ----

struct OpenSession {
  std::uint32_t ttl_ms = 0;
  std::uint32_t grace_ms = 0;
};
struct ResumeSession {
  std::uint64_t session = 0;
  Token token{};
};
struct Heartbeat {};
struct Goodbye {};
struct Guard {
  std::string_view key;
  OptionalBytes expected;  // absent: the key must not exist
};
struct Write {
  std::string_view key;
  OptionalBytes value;  // absent: delete
  bool ephemeral = false;
};
struct Transaction {
  std::vector<Guard> guards;
  std::vector<Write> writes;
};
struct Watch {
  std::string_view key;
  bool prefix = false;
};
struct Unwatch {
  std::uint64_t watch = 0;  // request id of the Watch
};
struct Stats {};
// Of version 2, from here on. `job`: the prefix of its keys.
struct Pulse {
  std::string_view job;
  Vote vote;
};
struct Confirm {
  std::uint64_t stamp = 0;  // of the Pulsed that came
};
struct OpenSuccessor {
  std::uint32_t ttl_ms = 0;
  std::uint32_t grace_ms = 0;
  std::uint64_t generation = 0;  // the highest that the client has been called by
  std::string_view job;
  Vote vote;
  std::uint32_t silent_ms = 0;  // since the client last confirmed anything to any store
};
struct Gone {
  std::uint64_t generation = 0;  // the highest that had called the agent that has gone
  std::string_view job;
  Vote vote;
};

// Why an agent with several endpoints is turned away by another with others.
inline constexpr const char* kOtherEndpoints = "it was given another --rdzv-endpoint";

// Of version 3. Where is the job's store? And what the asker knows of it.
struct Find {
  // An empty job: any store that the server knows of, if it holds no keys itself.
  std::uint64_t generation = 0;  // 0: it knows nothing, and the two below mean nothing
  std::string_view host;         // a numeric address
  std::uint16_t port = 0;        // 0: the job looks for a store to succeed that generation's
  std::string_view job;
  // What the asker was told about where the job may begin (ServerOptions::founders); 0: nothing.
  std::uint64_t founders = 0;
};

// How long ago were the sessions heard from that have ephemeral keys with this prefix? A store that
// does not know the request says so.
struct LastWords {
  std::string_view prefix;
};

using Request = std::variant<OpenSession, ResumeSession, Heartbeat, Goodbye, Transaction, Watch,
                             Unwatch, Stats, Pulse, Confirm, OpenSuccessor, Gone, Find, LastWords>;

// ---- replies ----

struct Welcome {
  std::uint16_t version = kHighestVersion;
  std::uint32_t frame_bytes = 0;  // largest value of a request's length field
  std::uint32_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
  std::uint32_t keys_per_request = 0;
};
struct VersionRefused {
  std::uint16_t lowest = 0;
  std::uint16_t highest = 0;
  std::string_view text;
};
struct Done {};
struct Session {
  std::uint64_t session = 0;
  Token token{};
  std::uint32_t ttl_ms = 0;
  std::uint32_t grace_ms = 0;
};
enum class EndReason : std::uint8_t { Unknown = 1, Silent = 2, Resumed = 3 };
struct SessionEnded {
  EndReason reason = EndReason::Unknown;
};
struct Committed {
  std::uint64_t revision = 0;
};
struct Refused {
  std::uint64_t revision = 0;
  std::vector<OptionalBytes> values;  // of the guards' keys, in their order
};
struct Entry {
  std::string_view key;
  OptionalBytes value;

  bool operator==(const Entry&) const = default;
};
struct Snapshot {
  std::uint64_t revision = 0;
  std::vector<Entry> entries;
};
struct Changes {
  std::uint64_t revision = 0;
  std::vector<Entry> changes;  // an absent value: deleted
};
struct Counters {
  std::vector<std::pair<std::string_view, std::uint64_t>> counters;
};
// Answers a Pulse, and calls an agent that has sent OpenSuccessor.
struct Pulsed {
  static constexpr std::uint32_t kNever = 0xFFFFFFFF;

  std::uint64_t generation = 0;
  std::uint32_t age_ms = kNever;  // since a majority was known to be with the store
  Place settled;                  // without a rank; no nodes: none is known
  std::uint64_t stamp = 0;
};
// Where the job's store is, as far as this one knows. Answers Find, and what asks a store for its
// service that is not the right one.
struct Moved {
  std::uint64_t generation = 0;  // 0: it does not know
  std::string_view host;         // a numeric address; empty: here, or not known
  std::uint16_t port = 0;
};
// Answers LastWords: an entry for each such key, in their order.
struct Heard {
  struct Entry {
    std::string_view key;
    std::uint32_t age_ms = 0;    // of the last word
    std::uint32_t lease_ms = 0;  // the session ends when it is so old

    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries;
};
enum class ErrorCode : std::uint16_t {
  Malformed = 1,
  FrameTooLong = 2,
  UnknownRequest = 3,
  Limit = 4,
  NoSession = 5,
  HasSession = 6,
  RequestIdInUse = 7,
  WrongStore = 8,
  NeedsToken = 9,
  OtherJob = 10,
  NeedsCertificate = 11
};
struct Error {
  ErrorCode code = ErrorCode::Malformed;
  std::string_view text;
};

using Reply = std::variant<Welcome, VersionRefused, Done, Session, SessionEnded, Committed, Refused,
                           Snapshot, Changes, Counters, Pulsed, Moved, Heard, Error>;

// ---- bytes to messages ----

// The client's opening. Views of fewer than kOpeningBytes bytes are a wrong magic or need more.
struct Opening {
  std::uint16_t lowest = kLowestVersion;
  std::uint16_t highest = kHighestVersion;
};
// False as soon as `bytes`, however few, cannot be the beginning of an opening.
[[nodiscard]] bool may_be_opening(std::string_view bytes);
// Precondition: `bytes` has kOpeningBytes and may_be_opening(bytes).
[[nodiscard]] Opening decode_opening(std::string_view bytes);
// The highest version that both speak, or nullopt.
[[nodiscard]] std::optional<std::uint16_t> choose_version(const Opening& opening);

struct Frame {
  std::uint64_t request = 0;
  std::uint8_t type = 0;
  std::string_view body;
};
enum class FrameStatus {
  Complete,
  NeedMore,  // `size` bytes are needed, at least
  Malformed,
  TooLong
};
struct FrameResult {
  FrameStatus status = FrameStatus::NeedMore;
  std::size_t size = kHeaderBytes;  // Complete: of the whole frame, header included
  Frame frame;
};
// What a client lets a reply say of its length.
inline constexpr std::size_t kLongestReply = std::size_t{1} << 30;
// The frame at the front of `bytes`. `longest`: largest value allowed in the length field.
[[nodiscard]] FrameResult next_frame(std::string_view bytes, std::size_t longest);

enum class DecodeStatus { Ok, Malformed, UnknownType, TooManyKeys };
// `keys_per_request` bounds each list before memory is taken for it.
[[nodiscard]] DecodeStatus decode_request(const Frame& frame, std::size_t keys_per_request,
                                          Request& request);
// UnknownType: not a reply of this version.
[[nodiscard]] DecodeStatus decode_reply(const Frame& frame, Reply& reply);

// ---- messages to bytes ----

void encode_opening(std::string& out, const Opening& opening = {});
void encode(std::string& out, std::uint64_t request, const Request& message);
void encode(std::string& out, std::uint64_t request, const Reply& message);
// Of an encoded frame, which stays the same otherwise.
void set_request(std::string& frame, std::uint64_t request);

}  // namespace drun::store::control
