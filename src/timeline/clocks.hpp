// The clocks of a job's hosts, set by what all of them have seen. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/event_log.hpp"

namespace drun::timeline {

struct ClockNote {
  std::string hostname;
  std::int64_t offset_ns = 0;  // was added to its times
  bool compared = true;        // false: nothing in the files allows to compare it with the others
};

// Changes at_ns of all entries to the clock of the node that led first. A round begins, is stopped,
// and the job ends on all nodes at about the same time: the median of these differences is a
// clock's offset, unless it is too small to tell from how long messages take. What it becomes is
// kept to what must be: no node begins a round before all have left the last one, and none stops
// for a failure before it has happened. Agents of one host share a clock. `runs`: of runs_of().
// Notes are about clocks that were set, and about those that could not be compared.
[[nodiscard]] std::vector<ClockNote> set_clocks_right(Log& log,
                                                      const std::vector<std::size_t>& runs);

}  // namespace drun::timeline
