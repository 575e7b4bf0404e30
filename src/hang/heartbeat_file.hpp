// The file by which a worker says that it makes progress: any program can write one. That it has
// changed is a heartbeat; what it says, in its last line, is the number of a step, or that it was
// the last heartbeat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"

namespace drun::hang {

inline constexpr std::string_view kHeartbeatVariable = "DRUN_HEARTBEAT_FILE";
inline constexpr std::string_view kLastHeartbeat = "end";

struct Heartbeat {
  // Which file it was, of which size, and when it was written: different for each heartbeat.
  struct Stamp {
    std::uint64_t file = 0;
    std::int64_t size = 0;
    std::int64_t nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  } stamp;
  std::optional<std::int64_t> step;
  bool last = false;

  bool operator==(const Heartbeat&) const = default;
};

// Takes what a heartbeat's file says; the stamp is left as it is.
void parse_heartbeat(std::string_view text, Heartbeat& heartbeat);

// Nullopt: there is none yet. Asks a file system, so it may hang.
[[nodiscard]] std::optional<Heartbeat> read_heartbeat(const std::string& file);
// `text`: a step, kLastHeartbeat, or empty. An error names the file.
[[nodiscard]] Status write_heartbeat(const std::string& file, std::string_view text);

}  // namespace drun::hang
