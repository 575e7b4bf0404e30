// The agent: one node's part of the job, from the first look at the endpoint to the exit code. This
// is the main path: find or host the store, take part in the rendezvous, run what it says, leave.
#pragma once

#include "launcher/options.hpp"

namespace drun::launcher {

// Runs one node to its end; returns drun's exit code. Forks the guardian first: call before any
// thread exists. Errors of the environment are thrown as std::system_error.
int run_agent(const Options& options);

}  // namespace drun::launcher
