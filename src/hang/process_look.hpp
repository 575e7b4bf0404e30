// What the kernel says of a rank's processes at one moment, as far as it tells whether they make
// progress.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drun::hang {

// A thread that has used little of its CPU lately.
struct ThreadLook {
  char state = '?';            // as in proc(5): R, S, D ...
  std::uint64_t run_ns = 0;    // on a CPU
  std::uint64_t switches = 0;  // how often it was put on one
  bool awaits_file = false;    // that is at work, perhaps far away
  bool operator==(const ThreadLook&) const = default;
};

// Bytes that a process has moved: by read and write calls, and from and to storage.
struct ByteCounts {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t storage_read = 0;
  std::uint64_t storage_written = 0;
  bool operator==(const ByteCounts&) const = default;
};

struct ProcessLook {
  std::uint64_t started = 0;  // tells processes with one number apart
  std::uint64_t cpu_ms = 0;   // of all its threads, those that have ended too
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t child_faults = 0;  // of children that have ended: each has had some
  int thread_count = 0;
  std::optional<ByteCounts> bytes;  // nullopt: may not be known
  // How long the threads that have ended were on a CPU: between these two. Nullopt: not known.
  struct Ended {
    std::uint64_t least_ns = 0;
    std::uint64_t most_ns = 0;
  };
  std::optional<Ended> ended_threads;
  // Nullopt: it is busy, so nobody has looked, or they may not be known.
  std::optional<std::map<pid_t, ThreadLook>> threads;
};

// A rank: its worker and everything that this has started.
struct RankLook {
  std::map<pid_t, ProcessLook> processes;
  // By its TCP connections, those to the workers' store left out. Only if none of its threads has
  // done anything since the last look.
  std::optional<std::uint64_t> network_bytes;
  // What makes it impossible to know: "it uses a GPU".
  std::string opaque;
};

}  // namespace drun::hang
