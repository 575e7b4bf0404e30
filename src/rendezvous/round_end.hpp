// When a round that runs ends, and what follows when its nodes have stopped their workers. Pure.
#pragma once

#include "rendezvous/decision_context.hpp"

namespace drun::rendezvous {

// Phase::Running: it goes on, is stopped, or the job has succeeded.
void running(DecisionContext& c);

// Phase::Stopping.
void stopping(DecisionContext& c);

// Precondition: there is a failure.
void choose_root(DecisionContext& c);

// Until when the round runs on although a rank has failed; nullopt: it is to be stopped.
[[nodiscard]] std::optional<Time> awaits_failures(const State& s);

// Nobody of the round is out of touch, and no worker that runs makes progress.
[[nodiscard]] bool is_still(const State& s);

// Which node is gone.
[[nodiscard]] std::string lost_text(const DecisionContext& c);

[[nodiscard]] std::string brief_text(const DecisionContext& c);

}  // namespace drun::rendezvous
