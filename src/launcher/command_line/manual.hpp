// What drun(1) has beside the table of flags. Pure.
#pragma once

#include "cli/program.hpp"

namespace drun::launcher {

[[nodiscard]] cli::ManualText manual_text();

}  // namespace drun::launcher
