// drunctl timeline: a picture of a job from the event files of its nodes.
#pragma once

#include "ctl/drunctl.hpp"

namespace drun::ctl {

// The exit code. Throws cli::UsageError for a file that cannot be read.
int draw_timeline(const CtlOptions& options);

}  // namespace drun::ctl
