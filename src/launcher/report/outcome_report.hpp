// What the user reads when the job is over: the failure report or the reason, and --report FILE.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/report/failure_report.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// Outcome for an agent that ends before it has joined a job.
[[nodiscard]] rendezvous::Outcome ended_early(rendezvous::End end, int exit_code, std::string text);

struct ReportChoices {
  std::string file;             // --report; empty: none
  std::size_t tail_lines = 20;  // of the failed worker's stderr
};

// `node`: of this node's ranks. `lost_logs`: the message about incomplete log files, if there is
// one. `say` gets the failure report; a line or two go to the log.
void report_outcome(const ReportChoices& choices, const rendezvous::Outcome& outcome,
                    const NodeEnd& node, const std::string& lost_logs,
                    const std::function<void(std::string)>& say);

// The failed worker's error file goes to a launcher above this one (TORCHELASTIC_ERROR_FILE in
// `inherited`, drun's own environment), as torchrun passes it on. Nothing happens if there is no
// such launcher or the worker wrote none; a failure is one warning.
void forward_error_file(const std::vector<std::string>& inherited,
                        const rendezvous::FailureSummary& failure, const std::string& workers_file);

}  // namespace drun::launcher
