#include "cli/completion.hpp"

namespace drun::cli {
namespace {

constexpr std::string_view kQuote = "\\'";

constexpr std::string_view kProgramHead =
    R"(# fish completion for @NAME@:  @NAME@ --print-completion fish | source
function _@FUNCTION@_program --description 'The program on the command line, and what follows it'
    set -l values @VALUES@
    set -l tokens (commandline -opc)
    set -e tokens[1]
    while set -q tokens[1]
        set -l token $tokens[1]
        set -e tokens[1]
        if test "$token" = --
            break
        else if contains -- (string replace -a -- _ - $token) $values
            set -e tokens[1]
        else if not string match -q -- '-*' $token
            set tokens $token $tokens
            break
        end
    end
    set -q tokens[1]; or return 1
    printf '%s\n' $tokens
end
function _@FUNCTION@_complete
    set -l words (_@FUNCTION@_program) (commandline -ct)
    complete -C (string join ' ' -- (string escape -- $words[1..-2]) $words[-1])
end
complete -c @NAME@ -f
complete -c @NAME@ -n 'not _@FUNCTION@_program >/dev/null' -a '(__fish_complete_command)'
complete -c @NAME@ -n '_@FUNCTION@_program >/dev/null' -a '(_@FUNCTION@_complete)'
)";

constexpr std::string_view kWordsHead =
    "# fish completion for @NAME@:  @NAME@ --print-completion fish | source\n";

std::string flag_line(const Flag& flag, std::string_view start) {
  std::string line = std::string(start) + " -l " + std::string(flag.name);
  if (flag.letter != 0) line += " -s " + std::string(1, flag.letter);
  if (flag.choices == "FILE") {
    line += " -r -F";
  } else if (flag.choices == "DIR") {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (flag.takes_value()) {
    line += " -x";
    if (!flag.choices.empty()) line += " -a " + single_quoted(flag.choices, kQuote);
  }
  return line + " -d " + single_quoted(flag.help, kQuote) + "\n";
}

}  // namespace

std::string fish_completion(const Program& program) {
  const bool prefix = program.runs_program;
  std::string script(prefix ? kProgramHead : kWordsHead);
  for (const Command& command : program.commands) {
    script += "complete -c @NAME@ -n __fish_use_subcommand -a " + std::string(command.name) +
              " -d " + single_quoted(command.help, kQuote) + "\n";
  }
  std::string values;
  const std::string start =
      prefix ? "complete -c @NAME@ -n 'not _@FUNCTION@_program >/dev/null'" : "complete -c @NAME@";
  for (const Flag* flag : offered(program)) {
    script += flag_line(*flag, start);
    if (!flag->takes_value()) continue;
    values += (values.empty() ? "--" : " --") + std::string(flag->name);
    if (flag->letter != 0) values += " -" + std::string(1, flag->letter);
  }
  script = replaced(std::move(script), "@VALUES@", values);
  script = replaced(std::move(script), "@FUNCTION@", function_name(program));
  return replaced(std::move(script), "@NAME@", program.name);
}

}  // namespace drun::cli
