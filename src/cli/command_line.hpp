// The command lines of drun-store and drunctl, over CLI11: parsing, --help, the manual page and the
// completions come from one description, the CLI::App. What is wrong is thrown as a UsageError,
// which main turns into one line and exit code 2.
//
// An app's options have a description and, if they take a value, a type name ("TIME"). An option's
// group is its heading; a command's footer is what follows its name ("KEY [N]").
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace drun::store {

// All but options, in order; behind "--" everything. nullopt: --help, --version, --print-man or
// --print-completion, which have been answered on standard output. Options may stand anywhere; of
// one that comes twice the last counts.
[[nodiscard]] std::optional<std::vector<std::string>> parse_command_line(CLI::App& app, int argc,
                                                                         char** argv);

// Settings common to both programs. Call it before options and commands are added.
void prepare(CLI::App& app);

[[nodiscard]] std::string help_text(const CLI::App& app);
[[nodiscard]] std::string manual_page(const CLI::App& app);
// `shell`: bash, zsh or fish; UsageError otherwise.
[[nodiscard]] std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace drun::store
