// --local-nodes N: N agents on this machine, as if they were N nodes. This process carries their
// rendezvous store, passes signals on and output through, and gives the job's exit code.
#pragma once

#include "launcher/options/options.hpp"

namespace drun::launcher {

// Call before any thread exists. Returns drun's exit code.
int run_local_nodes(const Options& options);

}  // namespace drun::launcher
