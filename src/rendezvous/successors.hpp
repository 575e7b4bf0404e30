// Which nodes begin a store in turn when the present one is lost, and whose majority then says
// which store is the right one. Pure.
#pragma once

#include "rendezvous/decision_context.hpp"

namespace drun::rendezvous {

// Of the round that begins.
void choose_electorate(DecisionContext& c);

// A round that was taken up from what its nodes say: some may have come back only now.
void find_successors(DecisionContext& c);

}  // namespace drun::rendezvous
