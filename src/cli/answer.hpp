// What a program says about itself: -h, --help, --help-all, --version, --print-completion,
// --print-man. Pure.
#pragma once

#include <optional>
#include <string>

#include "cli/parse.hpp"
#include "cli/program.hpp"

namespace drun::cli {

// To be printed on standard output; nullopt: nothing was asked. Throws UsageError.
[[nodiscard]] std::optional<std::string> answer(const Program& program, const GivenFlags& flags);

// The flags used most; all of a program that names none.
[[nodiscard]] std::string brief_help(const Program& program);
// "drun 0.1.0"
[[nodiscard]] std::string version_text(const Program& program);
// `all`: the minor group as well.
[[nodiscard]] std::string help_text(const Program& program, bool all);
// Of one of its commands.
[[nodiscard]] std::string command_help(const Program& program, const Command& command);
[[nodiscard]] std::string manual_page(const Program& program);
// `shell` is bash, zsh or fish. For a program that runs another, flags are completed up to the
// other program; then the other's own completion takes over.
[[nodiscard]] std::string completion_script(const Program& program, std::string_view shell);

}  // namespace drun::cli
