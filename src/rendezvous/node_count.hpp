// How many of the nodes that are there a round takes: all, as many as the job may have, or as many
// whole steps as they make (--nnodes MIN:MAX:STEP). Pure.
#pragma once

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// 0: too few for a round. What is beyond the result are spares.
[[nodiscard]] int nodes_taken(const Config& config, int there);

// A round of `running` nodes would be larger with `joiners` more: a whole step larger at least.
[[nodiscard]] bool makes_larger(const Config& config, int running, int joiners);

}  // namespace drun::rendezvous
