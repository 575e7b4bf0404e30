// Whether a rank hangs that others have waited for: then it is the cause, and those that failed are
// not. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/report/stopped_ranks.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

struct Suspicion {
  std::vector<int> ranks;
  std::string text;  // "rank 2 seems to hang: ..."
};

// The last words of a rank, or one of its last lines, are those of a time-out.
[[nodiscard]] bool speaks_of_timeout(std::string_view last_words,
                                     const std::vector<std::string>& tail);

// Of this node's ranks. Nothing unless all of this holds: the words of the first failure are those
// of a time-out; few ranks of the node or of the job still ran then, or few of them were silent for
// much longer than the others or needed SIGKILL, or a single one of the job ran and all others had
// run into a time-out, whatever it printed; and the time-out is that of a wait for other ranks
// by its words, or more ranks ran into it than are suspected.
[[nodiscard]] std::optional<Suspicion> suspect_hang(const rendezvous::FailureSummary& root,
                                                    const StoppedRanks& on_node);

// Of all nodes' ranks. As each node says it of its own, unless there are too many.
[[nodiscard]] std::vector<Suspicion> suspect_hangs(const rendezvous::FailureSummary& root,
                                                   const StoppedRanks& own,
                                                   const std::vector<StoppedRanks>& others);
[[nodiscard]] std::vector<int> ranks_of(const std::vector<Suspicion>& suspicions);

}  // namespace drun::launcher
