// The snapshot of a store as bytes: keys, queues and sessions, checked as a whole.
//
//   offset 0   8 bytes  "drunsnap"
//          8   u32      format version
//         12   u64      length of the body
//         20            body
//              u64      CRC-64/XZ of everything before it
//
// Body: u64 revision; u64 number of sessions, each u64 id, 16 bytes token, u64 time to live and u64
// grace in milliseconds; u64 number of keys, each bytes key, bytes value, u64 session or 0; u64
// number of queues, each bytes name, u64 number of items, each bytes. `bytes` are a u64 length and
// that many bytes; integers are little endian.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// Takes the next bytes of a snapshot. False: it failed, and no more come.
using SnapshotSink = std::function<bool(std::string_view)>;

// Gives the snapshot to `sink`, piece by piece. False: the sink failed. Takes no memory from the
// heap, so that it may run in a forked child of a program with threads.
[[nodiscard]] bool write_snapshot(const KeyTable& table, const Sessions& sessions,
                                  const SnapshotSink& sink);
[[nodiscard]] std::string encode_snapshot(const KeyTable& table, const Sessions& sessions);

// Fills an empty table and empty sessions. The sessions are alive for their whole time to live from
// `now` on. After an error both are useless. The error says what is wrong, but not where.
[[nodiscard]] Status decode_snapshot(std::string_view bytes, KeyTable& table, Sessions& sessions,
                                     Time now);

[[nodiscard]] std::uint64_t crc64(std::string_view bytes);

}  // namespace drun::store
