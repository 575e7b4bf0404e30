// The messages between the agent and its guardian. Both ends are one program on one machine, so
// integers travel in the machine's own order. A message is
//
//   u32 payload length | u8 type | u8 descriptors that come with it | u16 zero | payload
//
// and a string in a payload ends with a NUL.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/guardian.hpp"

namespace drun::process::wire {

enum class Type : std::uint8_t {
  Spawn = 1,  // agent to guardian
  Environment,
  SignalAll,
  Stop,
  Farewell,      // to the watchdog, too
  Renew,         // likewise
  RemoveFolder,  // likewise
  LeaveFolders,  // likewise; all of them
  End,           // the agent ends in order
  Signal,
  Hello = 64,  // guardian to agent
  Spawned,
  SpawnFailed,
  Exited,
  Stopped,
  LeaseOver,
};

struct Header {
  std::uint32_t length = 0;
  Type type = Type::Hello;
  std::uint8_t descriptors = 0;
  std::uint16_t reserved = 0;
};
static_assert(sizeof(Header) == 8);

// Of a message that the watchdog gets too, with its header: the longest are a folder's path and a
// farewell.
inline constexpr std::size_t kLongestForWatchdog = 64 * 1024;

// Builds one message.
class Writer {
 public:
  Writer(Type type, std::uint8_t descriptors) {
    Header header;
    header.type = type;
    header.descriptors = descriptors;
    number(header);
  }
  template <typename T>
  Writer& number(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& bytes(std::string_view value) {
    bytes_.append(value);
    return *this;
  }
  Writer& text(const std::string& value) {
    bytes_.append(value.c_str(), std::strlen(value.c_str()) + 1);
    return *this;
  }
  // The message; the writer is empty afterwards.
  [[nodiscard]] std::string finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() - sizeof(Header));
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

// Reads a payload front to back. Past the end it yields zeroes and empty strings, and ok() is
// false.
class Reader {
 public:
  explicit Reader(std::string_view payload) : rest_(payload) {}

  template <typename T>
  T number() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  // Points into the payload and ends with a NUL there.
  const char* text() {
    const auto end = rest_.find('\0');
    if (end == std::string_view::npos) {
      ok_ = false;
      return "";
    }
    const char* start = rest_.data();
    rest_.remove_prefix(end + 1);
    return start;
  }
  std::string bytes(std::size_t size) {
    if (rest_.size() < size) {
      ok_ = false;
      return {};
    }
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// What Signal, SignalAll and Stop carry.
struct SignalBody {
  std::int32_t signal = 0;
  WorkerId worker = 0;  // of Signal
};
struct StopBody {
  std::int32_t signal = 0;
  std::int64_t grace_ms = 0;
};
struct RenewBody {
  std::int64_t end_ns = 0;  // CLOCK_BOOTTIME
  std::int64_t length_ms = 0;
};
struct HelloBody {
  pid_t pid = 0;
};

// The spawn message: the strings are those of the request, in the order argv, environment; then
// CPUs and memory nodes as i32. `which` has bit n set when descriptor n (0, 1, 2 and the service's)
// comes along.
struct SpawnBody {
  WorkerId id = 0;
  std::uint32_t arguments = 0;
  std::uint32_t variables = 0;
  std::uint32_t cpus = 0;
  std::uint32_t memory_nodes = 0;
  std::uint8_t which = 0;
};
[[nodiscard]] std::string encode(const SpawnRequest& request);

// The variables that all later workers share.
[[nodiscard]] std::string encode_environment(const std::vector<std::string>& variables);

[[nodiscard]] std::string encode(const process::Farewell& farewell);
// An empty one if the message is cut short: half of it must not be said.
[[nodiscard]] process::Farewell decode_farewell(std::string_view payload);

// GuardianLost never travels.
[[nodiscard]] std::string encode(const GuardianEvent& event);
// Nothing if the message is not an event or is cut short.
[[nodiscard]] std::optional<GuardianEvent> decode_event(Type type, std::string_view payload);

}  // namespace drun::process::wire
