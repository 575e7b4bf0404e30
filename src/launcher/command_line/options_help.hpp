// What --help, --help-all, --version and --explain print, from the table of flags. Pure.
#pragma once

#include <string>

#include "launcher/command_line/options_scan.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

// `all`: every group; else the ones that most jobs need.
[[nodiscard]] std::string help_text(bool all, bool launch);
[[nodiscard]] std::string version_text();
// Every setting that works, its value and where it came from; then what was decided from them.
[[nodiscard]] std::string explain_text(const Settings& settings, const Options& options);

}  // namespace drun::launcher
