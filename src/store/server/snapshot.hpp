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
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "store/table/sessions.hpp"
#include "store/table/table.hpp"

namespace drun::store {

// The snapshot, all but its checksum.
[[nodiscard]] std::string encode_snapshot(const KeyTable& table, const Sessions& sessions);
// Completes it. Needs neither table nor sessions: may be done in another thread.
void append_checksum(std::string& snapshot);

// Fills an empty table and empty sessions. The sessions are alive for their whole time to live from
// `now` on. After an error both are useless. The error says what is wrong, but not where.
[[nodiscard]] Status decode_snapshot(std::string_view bytes, KeyTable& table, Sessions& sessions,
                                     Time now);

[[nodiscard]] std::uint64_t crc64(std::string_view bytes);

}  // namespace drun::store
