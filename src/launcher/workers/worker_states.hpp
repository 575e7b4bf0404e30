// What each worker is doing, in words: for a user whose time limit is over. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/report/stopped_ranks.hpp"
#include "launcher/workers/worker.hpp"

namespace drun::launcher {

// As Output::last_output().
using LastOutputOf = std::function<std::optional<Worker::Time>(process::WorkerId)>;

// "rank 3 (pid 4711): running for 12.3 s, silent for 2.1 s"; more than a few are folded: "ranks
// 0-63: running for at least 12.3 s, silent for at least 0.2 s", "rank 7: silent the longest, for
// 11.0 s". Nothing is said of a worker's silence if drun does not see what it writes.
[[nodiscard]] std::vector<RankState> describe_workers(const Workers& workers, int first_rank,
                                                      const LastOutputOf& last_output,
                                                      Worker::Time now);

// Of running workers, the few that have been silent for much longer than the others: "rank 7 silent
// the longest, for 11.0 s". Who has never printed has been silent since its start. Empty: none
// stands out.
[[nodiscard]] std::string describe_silence(const Workers& workers, int first_rank,
                                           const LastOutputOf& last_output, Worker::Time now);

// Sets `few`, `silent` and `silent_for` for what was stopped: of those that still ran, the ones
// that had been silent for much longer than the others, or all of them if they were no more than
// half of the workers. Nobody whose last output was less than a second before. And `all_silent`.
void find_silent(StoppedRanks& stopped, const Workers& workers, int first_rank);

}  // namespace drun::launcher
