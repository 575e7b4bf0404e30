// drunctl status: what jobs do, from the documents in their store.
#pragma once

#include "ctl/drunctl.hpp"
#include "ctl/drunctl_jobs.hpp"

namespace drun::ctl {

// The exit code.
int status(const CtlOptions& options, Deadline deadline);

}  // namespace drun::ctl
