// The agent: one node's part of the job, from the first look at the endpoint to the exit code. This
// is the main path: find or host the store, take part in the rendezvous, run what it says, leave.
#pragma once

#include "launcher/options.hpp"
#include "launcher/said_once.hpp"

namespace drun::launcher {

// Runs one node to its end; returns drun's exit code. Forks the guardian first: call before any
// thread exists. Errors of the environment are thrown as std::system_error. `neighbours`: shared
// with other agents at the same terminal, of which the first says what all have to say; or null.
int run_agent(const Options& options, SaidOnce* neighbours = nullptr);

}  // namespace drun::launcher
