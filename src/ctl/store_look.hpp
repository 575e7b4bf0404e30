// The stacks of a job, asked for through its store: from any host that reaches that.
#pragma once

#include <cstddef>
#include <string>

#include "ctl/drunctl_jobs.hpp"
#include "drun/base/result.hpp"
#include "stacks/stack_report.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

// Of the nodes of this round, of which there are so many; those that give no answer in time are
// counted in a note.
[[nodiscard]] Result<stacks::StackReport> look_through_store(store::ControlQuery& query,
                                                             const std::string& job,
                                                             std::size_t nodes, int round,
                                                             bool quick, Deadline deadline);

}  // namespace drun::ctl
