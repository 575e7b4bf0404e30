// Which variables of this process's environment go to other hosts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::hosts {

// What belongs to this machine, this login or the scheduler here, and means nothing or the wrong
// thing elsewhere: HOME, SSH_*, SLURM_* and the like; and what no shell would set.
[[nodiscard]] bool stays_here(std::string_view name);

struct Handed {
  std::vector<std::string> environment;  // "NAME=value", each name once
  std::vector<std::string> missing;      // asked for by name, and not set here
};

// All of `environment` ("NAME=value") that does not stay here; over it what `file` (--env-file)
// says, over that `asked` (-x). Both are lines "NAME=value", or "NAME" for the value that it has
// here, even if it would stay. In a file "#" begins a line that is a comment, "export " before a
// name means nothing, and a value is all up to the line's end, quotes too. The error names the
// line or the word, never a value.
[[nodiscard]] Result<Handed> handed_environment(const std::vector<std::string>& environment,
                                                std::string_view file,
                                                const std::vector<std::string>& asked);

}  // namespace drun::launcher::hosts
