// Tasks of one MPI launcher tell one another where they are, through the launcher: PMI-1, as a
// client, over the descriptor that it has given each task (PMI_FD). Hydra (MPICH, Intel MPI) and
// Flux serve it. The only part of this room that talks to anybody.
#pragma once

#include <chrono>
#include <string>

#include "drun/base/result.hpp"

namespace drun::launcher::cluster {

struct PmiAnswer {
  std::string text;   // what the task of rank 0 says
  std::string space;  // the launcher's name of the job
};

// Every task of the job must call this; it returns when all have. `first`: this is the task of rank
// 0, and `text` (without blanks) is what it says. Afterwards `fd` is closed, and the launcher has
// been told that this task needs it no more. Blocks until `deadline` at most.
[[nodiscard]] Result<PmiAnswer> exchange_by_pmi(int fd, bool first, const std::string& text,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace drun::launcher::cluster
