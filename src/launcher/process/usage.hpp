// What a process has used, as the kernel counts it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace drun::process {

// Of a process and of those of its descendants that were waited for.
struct Usage {
  std::int64_t cpu_ms = 0;       // in user and kernel mode
  std::int64_t peak_kib = 0;     // resident, of the largest one of them
  std::int64_t read_kib = 0;     // from storage; what was in memory is not counted
  std::int64_t written_kib = 0;  // to storage
  std::int64_t switches = 0;     // of context

  bool operator==(const Usage&) const = default;
};

[[nodiscard]] Usage from_rusage(const rusage& usage);

// Of a process that still runs, so far; the peak is its own, and of context switches those of the
// threads that it has now count. `folder`: "/proc/4711", which takes some microseconds a thread, or
// hangs where the process does: not for the agent's loop. nullopt: it is gone, or not this user's.
[[nodiscard]] std::optional<Usage> usage_so_far(const std::string& folder);
// The same of a process and all below it that run: often a shell waits for the program. The peak is
// that of the largest one.
[[nodiscard]] std::optional<Usage> usage_with_descendants(pid_t pid);

}  // namespace drun::process
