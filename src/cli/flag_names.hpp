// Which flag a name on the command line means. Pure.
#pragma once

#include <string>
#include <string_view>

#include "cli/program.hpp"

namespace drun::cli {

// "--log_dir" -> "--log-dir"
[[nodiscard]] std::string dashed(std::string_view written);
// The flag of the program or of `command` (which may be nullptr) that `written` names, as in
// "--nproc_per": the part before "=". Throws UsageError if there is none, or more than one.
[[nodiscard]] const Flag& flag_named(const Program& program, const Command* command,
                                     std::string_view written);
// The flag with this letter. `argument` is the whole of it, for the error.
[[nodiscard]] const Flag& flag_lettered(const Program& program, const Command* command, char letter,
                                        std::string_view argument);

}  // namespace drun::cli
