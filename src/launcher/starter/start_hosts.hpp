// -H, --hostfile: drun starts its agents on other hosts and is their one stdout, stderr and exit
// code.
#pragma once

#include "launcher/options/options.hpp"

namespace drun::launcher {

// options.start holds what to start. Call before any thread exists. Returns drun's exit code.
int run_hosts(const Options& options);

}  // namespace drun::launcher
