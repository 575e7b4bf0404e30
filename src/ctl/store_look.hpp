// The stacks of a job, asked for through its store: from any host that reaches that.
#pragma once

#include <string>
#include <vector>

#include "ctl/drunctl_jobs.hpp"
#include "drun/base/result.hpp"
#include "stacks/stack_report.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

// Of the nodes of this round; those that give no answer in time are named in a note.
[[nodiscard]] Result<stacks::StackReport> look_through_store(
    store::ControlQuery& query, const std::string& job, const std::vector<stacks::NodeRanks>& nodes,
    int round, bool quick, Deadline deadline);

}  // namespace drun::ctl
