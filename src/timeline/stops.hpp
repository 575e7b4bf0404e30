// Why the rounds of a job were stopped. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "timeline/event_log.hpp"

namespace drun::timeline {

using RunRound = std::pair<std::size_t, std::int64_t>;  // a run and the number of a round in it

// Pointers into the log's entries.
struct Stop {
  const LogEntry* word = nullptr;   // the first round_stopping; nullptr: no node told one
  const LogEntry* cause = nullptr;  // what went wrong first, or who joined; nullptr: nothing did
};

// The stop of each round that any entry names. The leader says which failure counts; if its file is
// missing, the first failure counts, then the loss of a node, then a limit.
[[nodiscard]] std::map<RunRound, Stop> stops_of(const Log& log,
                                                const std::vector<std::size_t>& runs);

}  // namespace drun::timeline
