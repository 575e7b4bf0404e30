#include "cli/completion.hpp"

namespace drun::cli {
namespace {

// Inside _arguments, colons and brackets have a meaning.
std::string plain(std::string_view text) {
  std::string result(text);
  for (const char* special : {"\\", ":", "[", "]"})
    result = replaced(std::move(result), special, "\\" + std::string(special));
  return result;
}

std::string action(const Flag& flag) {
  if (flag.choices == "FILE") return "_files";
  if (flag.choices == "DIR") return "_files -/";
  return flag.choices.empty() ? " " : "(" + std::string(flag.choices) + ")";
}

std::string flag_lines(const Flag& flag) {
  const std::string tail =
      "[" + plain(flag.help) + "]" +
      (flag.takes_value() ? ":" + plain(flag.metavar) + ":" + action(flag) : "");
  const auto line = [&](const std::string& name) {
    return "    " + single_quoted(name + tail) + " \\\n";
  };
  std::string result = line("*--" + std::string(flag.name) + (flag.takes_value() ? "=" : ""));
  if (flag.letter != 0)
    result += line("*-" + std::string(1, flag.letter) + (flag.takes_value() ? "+" : ""));
  return result;
}

std::string words(const Program& program) {
  if (program.runs_program) {
    return "    '(-)1:program:{_command_names -e; _files}' \\\n"
           "    '*::arguments:_normal'\n";
  }
  if (program.commands.empty()) return "    '*:file:_files'\n";
  std::string list;
  for (const Command& command : program.commands)
    list += std::string(list.empty() ? "" : " ") + plain(command.name) +
            "\\:" + single_quoted(plain(command.help));
  return "    " + single_quoted("1:command:((" + list + "))") + " \\\n    '*:word:_files'\n";
}

}  // namespace

std::string zsh_completion(const Program& program) {
  std::string flags;
  for (const Flag* flag : offered(program))
    flags += flag_lines(*flag);
  std::string script =
      "#compdef @NAME@\n"
      "# zsh completion for @NAME@: save as _@NAME@ in a folder of $fpath, or\n"
      "#   source <(@NAME@ --print-completion zsh)   after compinit\n"
      "@FUNCTION@() {\n"
      "  _arguments -s -S \\\n" +
      flags + words(program) +
      "}\n"
      "if [[ ${funcstack[1]} == _@NAME@ ]]; then\n"
      "  @FUNCTION@ \"$@\"\n"
      "else\n"
      "  compdef @FUNCTION@ @NAME@\n"
      "fi\n";
  script = replaced(std::move(script), "@FUNCTION@", function_name(program));
  return replaced(std::move(script), "@NAME@", program.name);
}

}  // namespace drun::cli
