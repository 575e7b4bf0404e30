// The time limits of heartbeats: which worker has not given one for too long. Pure: what the files
// say comes in as an argument, and so does time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hang/heartbeat_file.hpp"

namespace drun::hang {

// Nullopt: any time will do.
struct HeartbeatLimits {
  std::optional<std::chrono::milliseconds> first;  // from the start to the first heartbeat
  std::optional<std::chrono::milliseconds> next;   // from one to the next
  std::optional<std::chrono::milliseconds> last;   // from the last one to the exit

  [[nodiscard]] bool any() const { return first || next || last; }
};

class Heartbeats {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A running worker, and what its file says now.
  struct Seen {
    std::uint32_t worker = 0;
    Time started;
    std::optional<Heartbeat> heartbeat;
  };
  struct Late {
    std::uint32_t worker = 0;
    std::string cause;  // "gave no heartbeat for 30.0 s after step 41 (--heartbeat-timeout)"
    std::optional<std::int64_t> step{};  // the last that was said
    bool operator==(const Late&) const = default;
  };

  // How far a worker has come: `quiet` since its heartbeat.
  struct Reached {
    std::uint32_t worker = 0;
    std::optional<std::int64_t> step;
    std::chrono::milliseconds quiet{};
  };
  struct Span {
    Reached behind, ahead;
  };

  explicit Heartbeats(const HeartbeatLimits& limits);

  // How often to look.
  [[nodiscard]] std::chrono::milliseconds interval() const { return interval_; }
  // All workers that run. Time in which nobody looked, because this process was stopped or the file
  // system gave no answer, is not counted. Of several that are late in the same moment and say
  // their steps, those that are behind the others; while one runs that was told of, and has given
  // no other heartbeat since, nobody else.
  [[nodiscard]] std::vector<Late> on_look(const std::vector<Seen>& seen, Time now);
  // Of those that have given a heartbeat, and not their last: the one with the lowest step, and of
  // several the one with the oldest heartbeat; that one also if not all of them say steps. And the
  // one at the other end of this order, as the same look has found it.
  [[nodiscard]] std::optional<Span> span() const;

 private:
  struct Record {
    std::optional<Heartbeat> heartbeat;
    std::optional<std::int64_t> step;  // the last that was said
    std::chrono::nanoseconds quiet{};  // since the heartbeat, or the start
    Time looked_at;
    bool told = false;
  };

  void count(Record& record, const Seen& seen, Time now) const;
  [[nodiscard]] std::string why_late(const Record& record) const;

  HeartbeatLimits limits_;
  std::chrono::milliseconds interval_;
  std::map<std::uint32_t, Record> records_;  // by worker
};

}  // namespace drun::hang
