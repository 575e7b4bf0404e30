// drunctl stacks: where the workers of a job are, equal stacks once.
#pragma once

#include "ctl/drunctl.hpp"
#include "ctl/drunctl_jobs.hpp"

namespace drun::ctl {

// The exit code.
int stacks(const CtlOptions& options, Deadline deadline);

}  // namespace drun::ctl
