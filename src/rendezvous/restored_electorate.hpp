// Whose majority says which store is the right one, as a new leader finds it out. Pure.
#pragma once

#include "rendezvous/found_keys.hpp"
#include "rendezvous/membership.hpp"

namespace drun::rendezvous {

// Finds whose majority counts, as far as anybody knows, and which of those nodes have not been
// heard of. Only a later store can know less than its own round document says.
void find_latest(State& state, const FoundKeys& found, const State* previous,
                 const RoundDocument& seen);

// Waits for those: they may have workers that an earlier store let run.
void wait_for_unheard(State& state, Time now);

}  // namespace drun::rendezvous
