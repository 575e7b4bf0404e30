// How a job ends, as its leader decides it: with which outcome, for which reason. Pure.
#pragma once

#include "rendezvous/decision_context.hpp"

namespace drun::rendezvous {

// The job is over.
void close(DecisionContext& c, Outcome outcome);

void close_failed(DecisionContext& c);

// There were not enough nodes in time.
[[nodiscard]] bool timed_out(const DecisionContext& c);

void close_timed_out(DecisionContext& c);

void close_stopped(DecisionContext& c, const StopRequest& request);

// All that are there were told to go, and nobody is waited for.
[[nodiscard]] bool all_leave(const DecisionContext& c);

// More rounds lost nodes than may.
void close_lost(DecisionContext& c);

void close_brief(DecisionContext& c);

}  // namespace drun::rendezvous
