// The name under which the ranks of a round find one another's PMI pairs. Pure.
#pragma once

#include <string>

#include "rendezvous/types.hpp"

namespace drun::launcher {

// Programs of several jobs may meet on a machine, and use it for names of their own: it has only
// letters, digits and underscores, and is another one in each job and round.
[[nodiscard]] std::string pmi_space(const std::string& run_id,
                                    const rendezvous::Assignment& assignment);

}  // namespace drun::launcher
