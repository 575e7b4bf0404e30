// The environment and the command line of one worker: torchrun's contract. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/options.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// drun's own environment with torchrun's variables set for this worker. `error_file` may be empty.
[[nodiscard]] std::vector<std::string> worker_environment(const Options& options,
                                                          const rendezvous::Assignment& assignment,
                                                          int local_rank,
                                                          const std::string& error_file);

// argv of this worker: ${local_rank} replaced as torchrun does.
[[nodiscard]] std::vector<std::string> worker_command(const Options& options, int local_rank);

}  // namespace drun::launcher
