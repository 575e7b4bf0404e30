#include "store/server/snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "drun/store/errors.hpp"
#include "store/protocol/bytes.hpp"

namespace drun::store {
namespace {

constexpr std::string_view kMagic = "drunsnap";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 20;
constexpr SessionId kLastSession = ~SessionId{0} / 2;  // leaves ids for those to come
constexpr std::size_t kChecksumBytes = 8;

std::string_view take_bytes(ByteReader& in) {
  return in.take_bytes(in.take<std::uint64_t>());
}

void put_bytes(std::string& out, std::string_view bytes) {
  append(out, static_cast<std::uint64_t>(bytes.size()));
  out.append(bytes);
}

void put_body(std::string& out, const KeyTable& table, const Sessions& sessions) {
  append(out, table.revision());
  append(out, static_cast<std::uint64_t>(sessions.size()));
  sessions.for_each([&](const Sessions::Record& record) {
    append(out, record.id);
    out.append(reinterpret_cast<const char*>(record.token.data()), record.token.size());
    append(out, static_cast<std::uint64_t>(record.ttl.count()));
    append(out, static_cast<std::uint64_t>(record.grace.count()));
  });
  append(out, static_cast<std::uint64_t>(table.size()));
  table.for_each([&](std::string_view key, std::string_view value, SessionId owner) {
    put_bytes(out, key);
    put_bytes(out, value);
    append(out, owner);
  });
  append(out, static_cast<std::uint64_t>(table.counts().queues));
  table.for_each_queue([&](std::string_view queue, const auto& items) {
    put_bytes(out, queue);
    append(out, static_cast<std::uint64_t>(items.size()));
    for (const std::string& item : items)
      put_bytes(out, item);
  });
}

Error damaged(const char* what) {
  return {Errc::SnapshotDamaged, what};
}

Result<std::string_view> checked_body(std::string_view bytes) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return damaged("not a snapshot of a drun store");
  if (bytes.size() < kHeadBytes + kChecksumBytes) return damaged("cut short");
  ByteReader in(bytes.substr(kMagic.size()));
  const auto version = in.take<std::uint32_t>();
  if (version != kVersion)
    return Error(Errc::Unsupported, "format version " + std::to_string(version) +
                                        ", this program knows " + std::to_string(kVersion));
  const auto length = in.take<std::uint64_t>();
  const std::size_t body_size = bytes.size() - kHeadBytes - kChecksumBytes;
  if (length > body_size) return damaged("cut short");
  if (length < body_size) return damaged("longer than it says");
  const auto checksum = load<std::uint64_t>(bytes.substr(bytes.size() - kChecksumBytes));
  if (crc64(bytes.substr(0, bytes.size() - kChecksumBytes)) != checksum)
    return damaged("its checksum does not match");
  return bytes.substr(kHeadBytes, body_size);
}

}  // namespace

// No library that drun needs anyway has this checksum, and the format promises it.
std::uint64_t crc64(std::string_view bytes) {
  static constexpr auto kTable = [] {
    constexpr std::uint64_t kPolynomial = 0xC96C5795D7870F42;  // reflected
    std::array<std::uint64_t, 256> table{};
    for (std::uint64_t byte = 0; byte < table.size(); ++byte) {
      std::uint64_t crc = byte;
      for (int bit = 0; bit < 8; ++bit)
        crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
      table[byte] = crc;
    }
    return table;
  }();
  std::uint64_t crc = ~std::uint64_t{0};
  for (const char byte : bytes)
    crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string encode_snapshot(const KeyTable& table, const Sessions& sessions) {
  std::string out(kMagic);
  append(out, kVersion);
  append(out, std::uint64_t{0});
  put_body(out, table, sessions);
  const std::uint64_t length = out.size() - kHeadBytes;
  std::memcpy(out.data() + kHeadBytes - sizeof length, &length, sizeof length);
  return out;
}

void append_checksum(std::string& snapshot) {
  append(snapshot, crc64(snapshot));
}

Status decode_snapshot(std::string_view bytes, KeyTable& table, Sessions& sessions, Time now) {
  const Result<std::string_view> body = checked_body(bytes);
  if (!body) return body.error();
  ByteReader in(body.value());
  const Error too_big(Errc::LimitExceeded, "holds more than the limit of total bytes");

  table.restore_revision(in.take<std::uint64_t>());
  std::unordered_set<SessionId> known{kNoSession};
  for (auto left = in.take<std::uint64_t>(); left > 0 && in.ok(); --left) {
    Sessions::Record record;
    record.id = in.take<std::uint64_t>();
    const std::string_view token = in.take_bytes(record.token.size());
    std::copy(token.begin(), token.end(), record.token.begin());
    record.ttl = Milliseconds(in.take<std::uint64_t>());
    record.grace = Milliseconds(in.take<std::uint64_t>());
    const bool plausible = record.id <= kLastSession && record.ttl >= Sessions::kShortestTtl &&
                           record.ttl <= Sessions::kLongestTtl && record.grace >= Milliseconds(0) &&
                           record.grace <= Sessions::kLongestGrace;
    if (!in.ok() || !plausible || !known.insert(record.id).second)
      return damaged("holds an impossible session");
    if (!sessions.restore(record, now)) return too_big;
  }
  for (auto left = in.take<std::uint64_t>(); left > 0 && in.ok(); --left) {
    const std::string_view key = take_bytes(in);
    const std::string_view value = take_bytes(in);
    const auto owner = in.take<std::uint64_t>();
    if (!in.ok() || !known.contains(owner)) return damaged("holds an impossible key");
    if (!table.put(key, value, owner)) return too_big;
  }
  for (auto left = in.take<std::uint64_t>(); left > 0 && in.ok(); --left) {
    const std::string_view queue = take_bytes(in);
    for (auto items = in.take<std::uint64_t>(); items > 0 && in.ok(); --items) {
      const std::string_view item = take_bytes(in);
      if (in.ok() && !table.push(queue, item)) return too_big;
    }
  }
  if (!in.ok() || !in.rest().empty()) return damaged("its parts do not add up");
  return Done{};
}

}  // namespace drun::store
