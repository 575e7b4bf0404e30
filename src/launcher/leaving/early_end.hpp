// The end of a job before there is an agent of it, for --events and --on-event.
#pragma once

#include <string>

#include "launcher/options/options.hpp"

namespace drun::launcher {

// Tells that the job has ended with this code, for this reason, and waits for whom it is told to:
// as long as an agent would. With neither flag it returns at once.
void tell_early_end(const Options& options, int exit_code, const std::string& why);

}  // namespace drun::launcher
