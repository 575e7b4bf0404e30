// The wire protocol of PyTorch's TCPStore, torch 1.13 to 2.14, as pure functions between bytes and
// messages. docs/protocol.md, section 2, has the byte layouts and the opcodes of each dialect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/store/limits.hpp"
#include "store/protocol/bytes.hpp"

namespace drun::store::tcpstore {

enum class Dialect : std::uint8_t {
  A,  // torch 1.13 and 2.0, and any old client that has not shown to be a 2.1
  B,  // torch 2.1
  C   // torch 2.2 and later
};

// Numbered as in dialect C.
enum class Op : std::uint8_t {
  Validate = 0,
  Set = 1,
  CompareSet = 2,
  Get = 3,
  Add = 4,
  Check = 5,
  Wait = 6,
  GetNumKeys = 7,
  DeleteKey = 8,
  Append = 9,
  MultiGet = 10,
  MultiSet = 11,
  CancelWait = 12,
  Ping = 13,
  QueuePush = 14,
  QueuePop = 15,
  QueueLen = 16,
  ListKeys = 17,
  Barrier = 18
};

inline constexpr std::uint32_t kValidateMagic = 0x3C85F7CE;
// The first bytes of every connection of dialect C: opcode 0 and the magic.
inline constexpr std::string_view kHandshake{"\0\xCE\xF7\x85\x3C", 5};

// Replies of one byte.
inline constexpr char kReady = 0;         // CHECK: all there
inline constexpr char kNotReady = 1;      // CHECK
inline constexpr char kStopWaiting = 0;   // WAIT, BARRIER
inline constexpr char kWaitCanceled = 1;  // CANCEL_WAIT

// What an opcode means in a dialect; nullopt: unknown there. VALIDATE is no request: see
// detect_dialect().
[[nodiscard]] std::optional<Op> op_of(Dialect dialect, std::uint8_t opcode);
// The opcode of a request; nullopt: the dialect does not have it.
[[nodiscard]] std::optional<std::uint8_t> opcode_of(Dialect dialect, Op op);

// ---- telling dialects apart ----

struct Detection {
  enum class Status { NeedMore, Decided, Rejected };
  Status status = Status::NeedMore;
  Dialect dialect = Dialect::A;  // Decided: A stands for "A or B"
  std::size_t consumed = 0;      // Decided: bytes that belong to no request
};
// Looks at the first bytes of a connection, at most nine. More bytes never change a decision.
[[nodiscard]] Detection detect_dialect(std::string_view bytes, const Limits& limits);

// ---- requests ----

// One request; views point into the decoded bytes. Fields that the op does not have are stale.
struct Request {
  Op op = Op::GetNumKeys;
  std::string_view key;
  std::string_view value;                // SET, APPEND, QUEUE_PUSH; COMPARE_SET: desired
  std::string_view expected;             // COMPARE_SET
  std::int64_t number = 0;               // ADD: delta; BARRIER: world size
  std::uint32_t nonce = 0;               // PING
  std::vector<std::string_view> keys;    // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::vector<std::string_view> values;  // MULTI_SET, as many as keys
};

// Decodes the requests of one connection. Between two calls for the same request it remembers how
// far it has looked, so that a list that trickles in costs no more than one that comes at once.
class Decoder {
 public:
  enum class Status { Complete, NeedMore, Refused };
  struct Result {
    Status status = Status::NeedMore;
    std::size_t size = 0;     // Complete: bytes of the request. NeedMore: fewer are no use
    const char* reason = "";  // Refused: what is wrong, for the log
  };

  explicit Decoder(Dialect dialect) : dialect_(dialect) {}

  // The request at the front of `bytes`, which begin where the last complete request ended, and
  // only grow until this one is complete. Precondition: not empty.
  [[nodiscard]] Result next(std::string_view bytes, const Limits& limits, Request& request);

  [[nodiscard]] Dialect dialect() const { return dialect_; }

 private:
  void look_for_b(std::string_view bytes, const Limits& limits);

  Dialect dialect_;
  std::size_t scanned_ = 0;      // bytes of a list that have been looked at; 0: none
  std::size_t fields_left_ = 0;  // of that list
};

// Appends a request as a client sends it. Precondition: the dialect has it.
void encode(std::string& out, Dialect dialect, const Request& request);

// u64 length and the bytes: keys and values, in both directions.
inline void append_vector(std::string& out, std::string_view bytes) {
  append(out, static_cast<std::uint64_t>(bytes.size()));
  out.append(bytes);
}

}  // namespace drun::store::tcpstore
