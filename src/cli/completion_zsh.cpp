#include "cli/completion.hpp"

namespace drun::cli {
namespace {

constexpr std::string_view kZshScript = R"(#compdef @NAME@
# zsh completion for @NAME@: save as _@NAME@ in a folder of $fpath, or
#   source <(@NAME@ --print-completion zsh)   after compinit
@FUNCTION@() {
@BODY@}
if [[ ${funcstack[1]} == _@NAME@ ]]; then
  @FUNCTION@ "$@"
else
  compdef @FUNCTION@ @NAME@
fi
)";

constexpr std::string_view kZshProgram = R"(  _arguments -s -S \
@FLAGS@    '(-)1:program:{_command_names -e; _files}' \
    '*::arguments:_normal'
)";

constexpr std::string_view kNoWords = R"(  _arguments -s -S \
@FLAGS@    && return
)";

// Behind a command its own flags are known as well.
constexpr std::string_view kZshCommands =
    R"(  local curcontext=$curcontext state line words_are='*:word: '
  local -a flags own
  local -A opt_args
  flags=(
@FLAGS@  )
  _arguments -C -s -S $flags \
    @COMMANDS@ \
    '(-)*::argument:->argument' && return
  [[ $state == argument ]] || return
  case $words[1] in
@OWN@  esac
  _arguments -s -S $flags $own $words_are
)";

// Inside _arguments, colons and brackets have a meaning.
std::string plain(std::string_view text) {
  std::string result(text);
  for (const char* special : {"\\", ":", "[", "]"})
    result = replaced(std::move(result), special, "\\" + std::string(special));
  return result;
}

constexpr Actions kZshActions{.none = " ",
                              .file = "_files",
                              .folder = "_path_files -/",
                              .one = "(@THESE@)",
                              .list = R"({compset -P "*,"; compadd -S "" -- @THESE@})"};

// What stands behind the flag's name.
std::string tail(const Flag& flag) {
  return "[" + plain(flag.help) + "]" +
         (flag.takes_value() ? ":" + plain(flag.metavar) + ":" + action_for(flag, kZshActions)
                             : "");
}

std::string line(const std::string& specification, std::string_view end) {
  return "    " + single_quoted(specification) + std::string(end);
}

std::string flag_lines(const Flag& flag, std::string_view end) {
  std::string result =
      line("*--" + std::string(flag.name) + (flag.takes_value() ? "=" : "") + tail(flag), end);
  if (flag.letter != 0)
    result += line(
        "*-" + std::string(1, flag.letter) + (flag.takes_value() ? "+" : "") + tail(flag), end);
  return result;
}

std::string all_flag_lines(const Program& program, std::string_view end) {
  std::string result;
  for (const Flag* flag : offered(program))
    result += flag_lines(*flag, end);
  for (const auto& [word, name] : program.words)
    result += line("*" + std::string(word) + tail(*program.find(name)), end);
  for (const Spelling& spelling : unoffered(program)) {
    const Flag& flag = *spelling.flag;
    result += line("!*" + spelling.name + (flag.takes_value() ? "=" : "") + tail(flag), end);
  }
  return result;
}

std::string zsh_commands(const Program& program) {
  std::string list;
  for (const Command& command : program.commands)
    list += std::string(list.empty() ? "" : " ") + plain(command.name) +
            "\\:" + single_quoted(plain(command.help));
  return single_quoted("(-)1:command:((" + list + "))");
}

std::string own_flags(const Program& program) {
  std::string result;
  for (const Command& command : program.commands) {
    std::string lines;
    for (const Flag& flag : command.flags)
      lines += flag_lines(flag, "\n");
    if (!lines.empty() || command.files)
      result += "    " + std::string(command.name) + ") own=(\n" + lines + "    )" +
                (command.files ? "; words_are='*:file:_files'" : "") + " ;;\n";
  }
  return result;
}

}  // namespace

std::string zsh_completion(const Program& program) {
  std::string script(kZshScript);
  const auto put = [&](std::string_view mark, std::string_view text) {
    script = replaced(std::move(script), mark, text);
  };
  const bool has_commands = !program.commands.empty();
  put("@BODY@", program.runs_program ? kZshProgram : has_commands ? kZshCommands : kNoWords);
  put("@FLAGS@", all_flag_lines(program, has_commands ? "\n" : " \\\n"));
  put("@COMMANDS@", zsh_commands(program));
  put("@OWN@", own_flags(program));
  put("@FUNCTION@", function_name(program));
  put("@NAME@", program.name);
  return script;
}

}  // namespace drun::cli
