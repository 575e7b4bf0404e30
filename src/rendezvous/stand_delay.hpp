// How long an agent waits before it stands for leader: different for each, so that not all of them
// stand at once, and the same in each run, so that the simulation can be repeated. Pure.
#pragma once

#include <optional>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// The nodes of a round stand in their order: the first to stand is elected before the others have
// their turn. `nodes`: of the round, 0: none is known; `group_rank`: in it.
[[nodiscard]] Milliseconds stand_delay(const Config& config, bool is_host, int nodes,
                                       std::optional<int> group_rank);

}  // namespace drun::rendezvous
