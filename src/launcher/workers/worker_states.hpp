// What each worker is doing, in words: for a user whose time limit is over. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/workers/worker.hpp"

namespace drun::launcher {

// "rank 3 (pid 4711): running for 12.3 s"; more than a few are folded: "ranks 0-63: running for at
// least 12.3 s".
[[nodiscard]] std::vector<std::string> describe_workers(const Workers& workers, int first_rank,
                                                        Worker::Time now);

}  // namespace drun::launcher
