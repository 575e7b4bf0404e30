// What --explain prints. Pure.
#pragma once

#include <string>

#include "cli/parse.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// Every flag and its value: first those that were given, with the spelling that set them; then what
// was decided from them, and what drun would warn of.
[[nodiscard]] std::string explain_text(const cli::GivenFlags& flags, const Options& options);

}  // namespace drun::launcher
