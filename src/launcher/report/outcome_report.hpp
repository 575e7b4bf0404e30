// What is told when the job is over: to the user the failure report or the reason, to programs
// --report FILE and the error file of a launcher above drun.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/report/failure_report.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// Outcome for an agent that ends before it has joined a job.
[[nodiscard]] rendezvous::Outcome ended_early(rendezvous::End end, int exit_code, std::string text);

// Who reads what is told here.
enum class Reader {
  User,
  Starter  // another drun, which has started this one and gathers what all hosts' ranks did
};

// `node`: of this node's ranks; of others only those are told that seem to hang. `tail_lines`: of
// the failed worker's stderr. `lost_logs`: the message about incomplete log files, if there is one.
// `say` gets the failure report, and for a starter packed_ranks(); a line or two go to the log.
void report_outcome(std::size_t tail_lines, const rendezvous::Outcome& outcome, const NodeEnd& node,
                    const std::string& lost_logs, Reader reader,
                    const std::function<void(std::string)>& say);

// Writes a file, which may hang; all that it uses is its own. Empty: there is none to write.
using WriteFile = std::function<Status()>;

// --report; `file` may be empty. `knows`: this agent knows how the job ended; one that does not
// leaves a report alone that says so.
[[nodiscard]] WriteFile report_file(const std::string& file, const rendezvous::Outcome& outcome,
                                    const NodeEnd& node, bool knows);
// Replaces what an earlier job has left there. What cannot be replaced, a pipe or a device, gets
// nothing before the end. `file` may be empty.
[[nodiscard]] WriteFile running_report(const std::string& file);
// For a drun that ends before it is an agent: writes --report here and now, or says why it cannot.
void report_early(const std::string& file, int exit_code, const std::string& text);

// The failed worker's error file goes to a launcher above this one (TORCHELASTIC_ERROR_FILE in
// `inherited`, drun's own environment), as torchrun passes it on. Nothing happens if there is no
// such launcher or the worker wrote none.
[[nodiscard]] WriteFile forwarded_error_file(const std::vector<std::string>& inherited,
                                             const rendezvous::FailureSummary& failure,
                                             const std::string& workers_file);

}  // namespace drun::launcher
