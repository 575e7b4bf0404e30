// The parts of completion.cpp: one script for each shell. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shell_quote.hpp"
#include "cli/program.hpp"

namespace drun::cli {

// What Flag::choices says.
struct Choices {
  enum class Kind { None, File, Folder, One, List } kind;
  std::string_view words;  // of One and List
};
[[nodiscard]] Choices choices_of(const Flag& flag);

// What a shell's script does for the value of a flag with each kind of choices, "@THESE@" being the
// words.
struct Actions {
  std::string_view none;
  std::string_view file;
  std::string_view folder;
  std::string_view one;
  std::string_view list;
};
[[nodiscard]] std::string action_for(const Flag& flag, const Actions& actions);

// The program's flags that are offered: not those of the minor group.
[[nodiscard]] std::vector<const Flag*> offered(const Program& program);
// All others that it takes as well: those of the minor group, earlier names, underscores for
// dashes. A script must know which of them have a value, to find where the program begins.
struct Spelling {
  std::string name;  // with dashes
  const Flag* flag;
};
[[nodiscard]] std::vector<Spelling> unoffered(const Program& program);
// Every spelling but those with underscores, letters too, with blanks between.
[[nodiscard]] std::string spellings(const Program& program, bool with_value);

// "--wait --file"
[[nodiscard]] std::string long_names(std::span<const Flag* const> flags);
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
