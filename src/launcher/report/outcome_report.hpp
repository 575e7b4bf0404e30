// What the user is told when the job is over: the failure report or the reason, and --report FILE.
#pragma once

#include <functional>
#include <string>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// How it ends where this agent decides it, alone: not part of a job yet.
[[nodiscard]] rendezvous::Outcome ended_early(rendezvous::End end, int exit_code, std::string text);

// Behind everything that the workers have written. Waits for a stalled reader for a second at most.
// A success whose output could not be written becomes exit code 125.
// `say` gets the failure report; one line goes to the log.
void report_outcome(const Options& options, rendezvous::Outcome& outcome, Output& output,
                    const std::function<void(std::string)>& say);

// The failed worker's error file goes to a launcher above this one (TORCHELASTIC_ERROR_FILE in
// drun's own environment), as torchrun passes it on. Nothing where there is no such launcher or the
// worker wrote none; a failure is one warning.
void pass_on(const Options& options, const rendezvous::FailureSummary& failure,
             const std::string& workers_file);

}  // namespace drun::launcher
