// What --print-completion prints: completion scripts from the table of flags. Pure.
#pragma once

#include <string>
#include <string_view>

namespace drun::launcher {

// `shell` is bash, zsh or fish. Flags are completed up to the program; then the program's own
// completion takes over.
[[nodiscard]] std::string completion_script(std::string_view shell);

}  // namespace drun::launcher
