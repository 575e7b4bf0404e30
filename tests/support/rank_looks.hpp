// What a look at a worker finds, for tests of what is concluded from it.
#pragma once

#include <cstdint>

#include "hang/process_look.hpp"

namespace drun::hang::test {

// A worker of one process with one thread, which sleeps now; until then it has written so many
// bytes and used so much of a CPU.
inline RankLook rank_with(std::uint64_t written, std::uint64_t cpu_ms) {
  ProcessLook process;
  process.bytes = ByteCounts{0, written, 0, 0};
  process.cpu_ms = cpu_ms;
  process.thread_count = 1;
  process.threads.emplace();
  process.threads->emplace(1, ThreadLook{'S', 0, 0});
  RankLook rank;
  rank.processes.emplace(1, process);
  rank.network_bytes = 0;
  return rank;
}

}  // namespace drun::hang::test
