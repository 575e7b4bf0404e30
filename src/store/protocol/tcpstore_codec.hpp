// The wire protocol of PyTorch's TCPStore, torch 1.13 to 2.14, as pure functions between bytes and
// messages, for both ends: servers decode requests, clients encode them and read replies.
// docs/protocol.md, section 2, has the byte layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/store/limits.hpp"
#include "drun/store/tcpstore_version.hpp"
#include "store/protocol/bytes.hpp"
#include "store/protocol/tcpstore_ops.hpp"

namespace drun::store::tcpstore {

inline constexpr std::uint32_t kValidateMagic = 0x3C85F7CE;
// The first bytes of every connection of Torch2_2: VALIDATE, which is opcode 0 and the magic.
inline constexpr std::string_view kHandshake{"\0\xCE\xF7\x85\x3C", 5};

// Replies of one byte.
inline constexpr char kReady = 0;         // CHECK: all there
inline constexpr char kNotReady = 1;      // CHECK
inline constexpr char kStopWaiting = 0;   // WAIT, BARRIER
inline constexpr char kWaitCanceled = 1;  // CANCEL_WAIT

// ---- telling versions apart ----

struct Detection {
  enum class Status { NeedMore, Decided, Rejected };
  Status status = Status::NeedMore;
  // Decided: Torch1_13 stands for "1.13 or 2.1".
  TcpStoreVersion version = TcpStoreVersion::Torch1_13;
  std::size_t consumed = 0;  // Decided: bytes that belong to no request
};
// Looks at the first bytes of a connection, at most nine. More bytes never change a decision.
[[nodiscard]] Detection detect_version(std::string_view bytes, const Limits& limits);

// ---- requests ----

// One request; views point into the decoded bytes. Fields that the op does not have are stale.
struct Request {
  Op op = Op::GetNumKeys;
  std::string_view key{};
  std::string_view value{};                // SET, APPEND, QUEUE_PUSH; COMPARE_SET: desired
  std::string_view expected{};             // COMPARE_SET
  std::int64_t number = 0;                 // ADD: delta; BARRIER: world size
  std::uint32_t nonce = 0;                 // PING
  std::vector<std::string_view> keys{};    // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::vector<std::string_view> values{};  // MULTI_SET, as many as keys
};

// Appends a request as a client sends it. Precondition: the version has it.
void encode(std::string& out, TcpStoreVersion version, const Request& request);

// u64 length and the bytes: keys and values, in both directions.
inline void append_vector(std::string& out, std::string_view bytes) {
  append(out, static_cast<std::uint64_t>(bytes.size()));
  out.append(bytes);
}

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

  explicit Decoder(TcpStoreVersion version) : version_(version) {}

  // The request at the front of `bytes`, which begin where the last complete request ended, and
  // only grow until this one is complete. Precondition: not empty.
  [[nodiscard]] Result next(std::string_view bytes, const Limits& limits, Request& request);

  [[nodiscard]] TcpStoreVersion version() const { return version_; }

 private:
  void look_for_2_1(std::string_view bytes, const Limits& limits);
  [[nodiscard]] Result next_list(std::string_view bytes, const Limits& limits, Request& request);

  TcpStoreVersion version_;
  std::size_t scanned_ = 0;      // bytes of a list that have been looked at; 0: none
  std::size_t fields_left_ = 0;  // of that list
};

// ---- replies ----

struct Reply {
  std::int64_t integer = 0;  // of Byte, Nonce, Integer, Popped
  std::vector<std::string> values;
};

// Reads one reply that arrives in pieces.
class ReplyReader {
 public:
  enum class State { NeedMore, Done, TooLarge, Malformed };

  // `count`: of Values. `max_value_bytes`: a longer string ends it in TooLarge.
  ReplyReader(ReplyShape shape, std::size_t count, std::size_t max_value_bytes);

  // Takes from `bytes` what belongs to the reply and says in `taken` how much that was; what it
  // leaves must come again, with more behind it.
  State read(std::string_view bytes, std::size_t& taken);

  [[nodiscard]] Reply& reply() { return reply_; }

 private:
  State read_integer(std::string_view bytes, std::size_t& taken);
  State read_value(std::string_view bytes, std::size_t& taken);

  ReplyShape shape_;
  std::size_t max_value_bytes_;
  std::size_t missing_;                 // strings still to come
  bool integer_missing_;                // the leading integer is still to come
  std::optional<std::uint64_t> value_;  // length of the string that is being read
  Reply reply_;
};

}  // namespace drun::store::tcpstore
