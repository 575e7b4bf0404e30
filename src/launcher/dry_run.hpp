// --dry-run: who would run where, with which environment and command. Pure.
#pragma once

#include <string>
#include <string_view>

#include "launcher/options/options.hpp"

namespace drun::launcher {

// For people and for scripts: each worker's line can be pasted into a shell. Only variables that
// drun sets are shown; what is only decided when the job starts is shown in angle brackets. The
// same options give the same text.
[[nodiscard]] std::string dry_run(const Options& options);

}  // namespace drun::launcher
