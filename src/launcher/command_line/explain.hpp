// What --explain prints. Pure.
#pragma once

#include <string>

#include "cli/parse.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// Every flag, its value and where it came from; then what was decided from them.
[[nodiscard]] std::string explain_text(const cli::GivenFlags& flags, const Options& options);

}  // namespace drun::launcher
