// --replica-groups G where one drun starts them all, on this machine or on other hosts (-H): each
// group is a drun of its own, below this process. This one passes signals on and output through,
// starts the lighthouse beside them, and gives the job's exit code.
#pragma once

#include <functional>
#include <string>

#include "launcher/options/options.hpp"

namespace drun::launcher {

// As the drun of this group reads it. `lighthouse`: where it is; empty: nobody has said.
[[nodiscard]] Options group_options(const Options& options, int group,
                                    const std::string& lighthouse);

// The job of one worker that the lighthouse is, so that what it starts ends with it. `port`: what
// ${port} in its command stands for.
[[nodiscard]] Options lighthouse_options(const Options& options, int port);

// `run` runs one of the groups, in a process of its own, and returns its exit code. Call before any
// thread exists. Returns drun's exit code.
int run_replica_groups(const Options& options, const std::function<int(const Options&)>& run);

}  // namespace drun::launcher
