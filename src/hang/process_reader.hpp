// Looks at ranks through /proc, and at their connections. May hang where a process does, and takes
// some microseconds a process: for a thread of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hang/process_look.hpp"

namespace drun::hang {

struct WatchedRank {
  std::uint32_t worker = 0;
  pid_t pid = 0;
};

struct NodeLook {
  std::chrono::steady_clock::time_point at;
  std::map<std::uint32_t, RankLook> ranks;  // by worker
};

// `before`: the look before this one; of ranks that have made progress since, less is read. What
// goes over `store_port` is not counted: torch's watchdogs ask the workers' store once a second,
// whether the program makes progress or not. `disturbed`: drun itself has woken their threads since
// the look before, so that they woke in a read says nothing.
[[nodiscard]] NodeLook look_at(const std::vector<WatchedRank>& ranks, const NodeLook& before,
                               std::uint16_t store_port, bool disturbed = false);

}  // namespace drun::hang
