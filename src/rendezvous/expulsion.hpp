// Which members must leave, as the leader decides it: those that may not take part, and those that
// do not stop their workers in time. Pure.
#pragma once

#include "rendezvous/decision_context.hpp"

namespace drun::rendezvous {

// Writes to the member why it must leave.
void refuse_member(DecisionContext& c, const std::string& ticket, const std::string& reason,
                   bool unfit = false);

// All members that may not take part.
void refuse_all(DecisionContext& c);

// When to look after those that stop since then.
[[nodiscard]] Time stop_due(const State& state, const Config& config, Time since);

// A store that was full turned away those that had stopped. Nobody is left behind before it has
// taken a write, and they have had the time to ask it again.
[[nodiscard]] bool may_expel(DecisionContext& c, std::optional<Time> since);

// The job goes on without the nodes that have not stopped their workers within stop_timeout.
void expel_unleft(DecisionContext& c);

// The same for those that hold workers, but no place in the last round.
void expel_holding(DecisionContext& c);

}  // namespace drun::rendezvous
