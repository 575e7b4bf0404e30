// The parts of completion.cpp: one script for each shell. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/shell_quote.hpp"
#include "cli/program.hpp"

namespace drun::cli {

// The flags that are completed: not those of the minor group.
[[nodiscard]] std::vector<const Flag*> offered(const Program& program);
// The names of the commands with blanks between.
[[nodiscard]] std::string command_names(const Program& program);
// "_drun_store": what the script's functions are called.
[[nodiscard]] std::string function_name(const Program& program);

// `text` with each `from` as `to`.
[[nodiscard]] std::string replaced(std::string text, std::string_view from, std::string_view to);

[[nodiscard]] std::string bash_completion(const Program& program);
[[nodiscard]] std::string zsh_completion(const Program& program);
[[nodiscard]] std::string fish_completion(const Program& program);

}  // namespace drun::cli
