// Every flag of drun, once. Parsing, PET_* variables, --help, --explain, shell completion and the
// manual page all read this table.
#pragma once

#include <string_view>

#include "cli/program.hpp"

namespace drun::launcher {

inline constexpr std::string_view kRendezvousGroup = "How nodes find one another";

// `launch`: as drun-launch, with the flags that only torch.distributed.launch has.
[[nodiscard]] cli::Program drun_program(bool launch);

}  // namespace drun::launcher
