// What the user is told when the job is over: the failure report or the reason, and --report FILE.
#pragma once

#include <functional>
#include <string>

#include "launcher/options/options.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// Outcome for an agent that ends before it has joined a job.
[[nodiscard]] rendezvous::Outcome ended_early(rendezvous::End end, int exit_code, std::string text);

// `lost_logs`: what to tell of log files that are not complete, if anything. `say` gets the failure
// report; one line goes to the log.
void report_outcome(const Options& options, const rendezvous::Outcome& outcome,
                    const std::string& lost_logs, const std::function<void(std::string)>& say);

// The failed worker's error file goes to a launcher above this one (TORCHELASTIC_ERROR_FILE in
// drun's own environment), as torchrun passes it on. Nothing happens if there is no such launcher
// or the worker wrote none; a failure is one warning.
void forward_error_file(const Options& options, const rendezvous::FailureSummary& failure,
                        const std::string& workers_file);

}  // namespace drun::launcher
