// drunctl doctor: is this machine, are the nodes of this job, fit for a job?
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ctl/drunctl.hpp"
#include "doctor/check.hpp"
#include "doctor/node_report.hpp"
#include "drun/base/result.hpp"
#include "drun/worker.hpp"

namespace drun::ctl {

// The exit code: kNo if a check fails. As a worker of a job of several nodes it checks them all,
// and the one of rank 0 tells.
int doctor(const CtlOptions& options, std::chrono::steady_clock::time_point deadline);

// What this node has found, and then how it stands with the others. The checks of all nodes on the
// first of them; nothing on the others. The error: the workers' store cannot be reached.
[[nodiscard]] Result<std::vector<doctor::Check>> examine_nodes(
    const Worker& worker, doctor::NodeReport own, std::chrono::steady_clock::time_point deadline);

}  // namespace drun::ctl
