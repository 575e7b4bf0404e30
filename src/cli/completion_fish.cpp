#include "cli/completion.hpp"

namespace drun::cli {
namespace {

constexpr std::string_view kQuote = "\\'";

constexpr std::string_view kHead =
    R"(# fish completion for @NAME@:  @NAME@ --print-completion fish | source
function @FUNCTION@_words --description 'The first word that is no flag, and what follows it'
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
function @FUNCTION@_list --description 'The words, behind what stands before the last comma'
    set -l value (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    set -l before (string replace -r -- '[^,]*$' '' $value)
    printf '%s\n' "$before"$argv
end
function @FUNCTION@_underscores --description 'The flag at the cursor is written with underscores'
    string match -q -- '--*_*' (commandline -opc)[-1] (commandline -ct)
end
function @FUNCTION@_typed --description 'The flag at the cursor is this one'
    string match -q -- $argv[1] (commandline -opc)[-1]
    or string match -q -- "$argv[1]=*" (commandline -ct)
end
complete -c @NAME@ -f
)";

// What follows the program is completed as for the program alone.
constexpr std::string_view kFishProgram =
    R"(function @FUNCTION@_complete
    set -l words (@FUNCTION@_words) (commandline -ct)
    complete -C (string join ' ' -- (string escape -- $words[1..-2]) $words[-1])
end
complete -c @NAME@ -n 'not @FUNCTION@_words >/dev/null' -F -a '(__fish_complete_command)'
complete -c @NAME@ -n '@FUNCTION@_words >/dev/null' -a '(@FUNCTION@_complete)'
)";

std::string flag_line(const Program& program, const Flag& flag, std::string_view name,
                      std::string_view start) {
  using enum Choices::Kind;
  const Choices choices = choices_of(flag);
  std::string line = std::string(start) + " -l " + std::string(name);
  const std::string brief = short_form(program, flag);
  if (!brief.empty() && name == flag.name) line += " -s " + brief.substr(1);
  if (choices.kind == File) {
    line += " -r -F";
  } else if (choices.kind == Folder) {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (choices.kind == List) {
    line += " -x -a '(@FUNCTION@_list " + std::string(choices.words) + ")'";
  } else if (flag.takes_value()) {
    line += " -x";
    if (choices.kind == One) line += " -a " + single_quoted(choices.words, kQuote);
  }
  return line + " -d " + single_quoted(flag.help, kQuote) + "\n";
}

std::string fish_commands(const Program& program) {
  std::string result;
  for (const Command& command : program.commands) {
    const std::string name(command.name);
    result += "complete -c @NAME@ -n 'not @FUNCTION@_words >/dev/null' -a " + name + " -d " +
              single_quoted(command.help, kQuote) + "\n";
    const std::string behind =
        "complete -c @NAME@ -n 'contains -- " + name + " (@FUNCTION@_words)[1]'";
    if (command.files) result += behind + " -F\n";
    for (const Flag& flag : command.flags)
      result += flag_line(program, flag, flag.name, behind);
  }
  return result;
}

}  // namespace

std::string fish_completion(const Program& program) {
  std::string script(kHead);
  if (program.runs_program) script += kFishProgram;
  script += fish_commands(program);
  const std::string start = program.runs_program
                                ? "complete -c @NAME@ -n 'not @FUNCTION@_words >/dev/null'"
                                : "complete -c @NAME@";
  // Who began with one gets the rest; nobody else is shown each flag twice.
  const std::string with_underscores =
      program.runs_program
          ? "complete -c @NAME@ -n 'not @FUNCTION@_words >/dev/null; and @FUNCTION@_underscores'"
          : "complete -c @NAME@ -n '@FUNCTION@_underscores'";
  for (const Flag* flag : offered(program)) {
    script += flag_line(program, *flag, flag->name, start);
    const std::string other = replaced(std::string(flag->name), "-", "_");
    if (other != flag->name) script += flag_line(program, *flag, other, with_underscores);
  }
  // Those that nothing shows have values all the same.
  for (const Spelling& spelling : unoffered(program)) {
    if (!spelling.flag->takes_value() || spelling.name.find('_') != std::string::npos) continue;
    script += flag_line(program, *spelling.flag, spelling.name.substr(2),
                        "complete -c @NAME@ -n '@FUNCTION@_typed " + spelling.name + "'");
  }
  script = replaced(std::move(script), "@VALUES@", spellings(program, true));
  script = replaced(std::move(script), "@FUNCTION@", function_name(program));
  return replaced(std::move(script), "@NAME@", program.name);
}

}  // namespace drun::cli
