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

constexpr std::size_t kPieceBytes = 64 * 1024;

// Table k: the CRC of a byte with k zero bytes behind it.
using CrcTables = std::array<std::array<std::uint64_t, 256>, 8>;
constexpr CrcTables make_crc_tables() {
  constexpr std::uint64_t kPolynomial = 0xC96C5795D7870F42;  // reflected
  CrcTables tables{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
    tables[0][i] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t i = 0; i < 256; ++i)
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xFF];
  return tables;
}

// Eight bytes at a time.
class Crc64 {
 public:
  void add(std::string_view bytes) {
    static constexpr CrcTables kTables = make_crc_tables();
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
      const std::uint64_t eight = load<std::uint64_t>(bytes) ^ crc_;
      crc_ = 0;
      for (std::size_t k = 0; k < 8; ++k)
        crc_ ^= kTables[7 - k][(eight >> (8 * k)) & 0xFF];
    }
    for (const char byte : bytes)
      crc_ = kTables[0][(crc_ ^ static_cast<std::uint8_t>(byte)) & 0xFF] ^ (crc_ >> 8);
  }
  [[nodiscard]] std::uint64_t value() const { return ~crc_; }

 private:
  std::uint64_t crc_ = ~std::uint64_t{0};
};

std::string_view take_bytes(ByteReader& in) {
  return in.take_bytes(in.take<std::uint64_t>());
}

// How long the body is.
class Measure {
 public:
  void raw(std::string_view bytes) { size_ += bytes.size(); }
  template <typename T>
  void integer(T) {
    size_ += sizeof(T);
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::uint64_t size_ = 0;
};

// Collects pieces for the sink, and checksums them.
class Pieces {
 public:
  explicit Pieces(const SnapshotSink& sink) : sink_(sink) {}

  void raw(std::string_view bytes) {
    if (bytes.size() > piece_.size() - used_) pass_on();
    if (bytes.size() > piece_.size()) return pass(bytes);
    std::memcpy(piece_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }
  template <typename T>
  void integer(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    raw({bytes, sizeof bytes});
  }
  // The end: everything, and its checksum.
  [[nodiscard]] bool finish() {
    pass_on();
    integer(crc_.value());
    pass_on();
    return good_;
  }

 private:
  void pass_on() { pass({piece_.data(), std::exchange(used_, 0)}); }
  void pass(std::string_view bytes) {
    if (!good_ || bytes.empty()) return;
    crc_.add(bytes);
    good_ = sink_(bytes);
  }

  const SnapshotSink& sink_;
  Crc64 crc_;
  std::array<char, kPieceBytes> piece_;
  std::size_t used_ = 0;
  bool good_ = true;
};

template <typename Out>
void put_bytes(Out& out, std::string_view bytes) {
  out.integer(static_cast<std::uint64_t>(bytes.size()));
  out.raw(bytes);
}

template <typename Out>
void put_body(Out& out, const KeyTable& table, const Sessions& sessions) {
  out.integer(table.revision());
  out.integer(static_cast<std::uint64_t>(sessions.size()));
  sessions.for_each([&](const Sessions::Record& record) {
    out.integer(record.id);
    out.raw({reinterpret_cast<const char*>(record.token.data()), record.token.size()});
    out.integer(static_cast<std::uint64_t>(record.ttl.count()));
    out.integer(static_cast<std::uint64_t>(record.grace.count()));
  });
  out.integer(static_cast<std::uint64_t>(table.size()));
  table.for_each([&](std::string_view key, std::string_view value, SessionId owner) {
    put_bytes(out, key);
    put_bytes(out, value);
    out.integer(owner);
  });
  out.integer(static_cast<std::uint64_t>(table.counts().queues));
  table.for_each_queue([&](std::string_view queue, const auto& items) {
    put_bytes(out, queue);
    out.integer(static_cast<std::uint64_t>(items.size()));
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

std::uint64_t crc64(std::string_view bytes) {
  Crc64 crc;
  crc.add(bytes);
  return crc.value();
}

bool write_snapshot(const KeyTable& table, const Sessions& sessions, const SnapshotSink& sink) {
  Measure body;
  put_body(body, table, sessions);
  Pieces out(sink);
  out.raw(kMagic);
  out.integer(kVersion);
  out.integer(body.size());
  put_body(out, table, sessions);
  return out.finish();
}

std::string encode_snapshot(const KeyTable& table, const Sessions& sessions) {
  std::string out;
  (void)write_snapshot(table, sessions, [&](std::string_view piece) {
    out.append(piece);
    return true;
  });
  return out;
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
