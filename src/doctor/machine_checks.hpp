// Checks of this machine alone: what its sheet says, and short tries of its disk and memory.
// They wait for the file systems; so for a program that has nothing else to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/check.hpp"
#include "facts/sheet.hpp"

namespace drun::doctor {

// What is judged, so that a test can say it.
struct MachineState {
  std::uint64_t shm_bytes = 0;  // /dev/shm: its size
  std::uint64_t shm_free = 0;
  std::uint64_t open_files = 0;             // the hard limit
  std::uint64_t locked_memory = 0;          // the soft limit; RLIM_INFINITY: none
  std::uint64_t processes = 0;              // the soft limit
  bool has_rdma = false;                    // /sys/class/infiniband has devices
  std::string host;                         // as gethostname() says
  std::vector<std::string> host_addresses;  // what the name means here; empty: nothing
  std::string lustre;                       // /sys/fs/lustre/health_check; empty: there is none
};

// `root`: in front of paths under /sys and /dev.
[[nodiscard]] MachineState look_at_machine(const std::string& root);
// Pure.
[[nodiscard]] std::vector<Check> judge_machine(const MachineState& state,
                                               const facts::Sheet& sheet);

// Writes some megabytes below `folder`, and reads them again.
[[nodiscard]] Check check_disk(const std::string& folder);
// Fills some megabytes of memory, and reads them again.
[[nodiscard]] Check check_memory();

}  // namespace drun::doctor
