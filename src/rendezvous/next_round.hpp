// When the next round begins, with which nodes, and how. Pure.
#pragma once

#include "rendezvous/decision_context.hpp"

namespace drun::rendezvous {

// Phase::Gathering: nodes are waited for.
void gathering(DecisionContext& c);

// Phase::Preparing: the workers' store of the round is made ready.
void preparing(DecisionContext& c);

}  // namespace drun::rendezvous
