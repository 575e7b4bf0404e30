// The agent: one node's part of the job, from the first look at the endpoint to the exit code. This
// is the main path: find or host the store, take part in the rendezvous, run what it says, leave.
#pragma once

#include <atomic>

#include "launcher/options/options.hpp"
#include "launcher/telling/shared_log_dedup.hpp"
#include "launcher/telling/shared_stop_reason.hpp"

namespace drun::launcher {

// Runs one node to its end; returns drun's exit code. Forks the guardian first: call before any
// thread exists; this thread's blocked signals are unblocked once they are handled. Errors of the
// environment are thrown as std::exception.
// The pointers are for one of several agents at the same terminal, null for others: with
// `neighbours` the first agent says what all have to say, and `unannounced` becomes true if the
// rest of the job may wait for this agent or go on without it: it never joined, was refused, was
// told to go, or lost the store. `why_stopped` says why whoever started it sends SIGTERM.
int run_agent(const Options& options, SharedLogDedup* neighbours = nullptr,
              std::atomic<bool>* unannounced = nullptr, SharedStopReason* why_stopped = nullptr);

}  // namespace drun::launcher
