#include "cli/completion.hpp"

namespace drun::cli {
namespace {

constexpr std::string_view kBashScript =
    R"(# bash completion for @NAME@:  source <(@NAME@ --print-completion bash)
@FUNCTION@() {
  local values=' @VALUES@ ' switches=' @SWITCHES@ '
  # The words as they were typed, up to the cursor: bash cuts at "=" and ":" as well.
  local line=${COMP_LINE:0:COMP_POINT} words=() starts=() word= i
  for (( i = 0; i <= COMP_CWORD; ++i )); do
    word=${COMP_WORDS[i]}
    if (( i == 0 )) || [[ $line == [[:space:]]* ]]; then
      line=${line#"${line%%[![:space:]]*}"}
      words+=('')
      starts+=("$i")
    fi
    (( i < COMP_CWORD )) || word=$line
    words[-1]+=$word
    line=${line#"$word"}
  done
  # readline keeps what ends with the last "=" or ":", and replaces the rest.
  [[ $word == *[!=:]* ]] || word=
  local cur=${words[-1]} last=$(( ${#words[@]} - 1 ))
  local kept=${cur:0:${#cur} - ${#word}} head= flag= command= literal= module= offers= list=
  for (( i = 1; i < last; ++i )); do
    word=${words[i]}
    case $word in
      --)
        literal=1
        (( ++i ))
        break
        ;;
@MODULE@      --*=*) ;;
      -?*)
        word=${word//_/-}
        if [[ $values == *" $word "* || $switches != *" $word "* && $values == *" $word"* ]]; then
          (( ++i ))
          (( i < last )) || flag=$word
        fi
        ;;
      *)
        @WORD@
        ;;
    esac
  done
  if [[ -z $flag$literal && $cur == --*=* ]] && (( i >= last )); then
    head=${cur%%=*}=
    flag=${cur%%=*}
    flag=${flag//_/-}
    cur=${cur#*=}
  fi
  COMPREPLY=()
  if [[ -n $flag ]]; then
    case $flag in
@CHOICES@
    esac
    if [[ -n $list ]]; then
      compopt -o nospace
      head+=${cur%"${cur##*,}"}
      cur=${cur##*,}
    fi
@WORDS@  fi
  [[ -z $offers ]] || mapfile -t COMPREPLY < <(compgen -W "$offers" -- "$cur")
  for i in "${!COMPREPLY[@]}"; do
    word=$head${COMPREPLY[i]}
    COMPREPLY[i]=${word#"$kept"}
  done
}
complete -F @FUNCTION@ @NAME@
)";

// `module`: the program is a Python module, which is no file.
constexpr std::string_view kModule = R"(      -m | --module)
        module=1
        ;;
)";

// What follows the program is completed as for the program alone.
constexpr std::string_view kBashProgram = R"(  elif (( i < last )); then
    if [[ -z $module ]] && declare -F _command_offset > /dev/null; then
      _command_offset "${starts[i]}"
      return
    fi
    compopt -o default
  elif [[ $cur == -* && -z $literal ]]; then
    offers='@FLAGS@'
  elif [[ -z $module ]]; then
    compopt -o filenames -o default
    mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
)";

constexpr std::string_view kWords = R"(  elif [[ $cur == -* && -z $literal ]]; then
    offers='@FLAGS@'
@COMMAND_FLAGS@)";

constexpr std::string_view kBashCommands = R"(  elif [[ -z $command ]] && (( i >= last )); then
    offers='@COMMANDS@'
@COMMAND_FILES@)";

constexpr Actions kBashActions{.none = "",
                               .file = "compopt -o default",
                               .folder = "compopt -o dirnames",
                               .one = "offers='@THESE@'",
                               .list = "offers='@THESE@' list=1"};

std::string choice_line(const Program& program, const Flag& flag) {
  const std::string what = action_for(flag, kBashActions);
  if (what.empty()) return "";
  std::string patterns = "--" + std::string(flag.name);
  if (const std::string brief = short_form(program, flag); !brief.empty())
    patterns += " | " + brief;
  return "      " + patterns + ") " + what + " ;;\n";
}

std::string choice_lines(const Program& program) {
  std::string result;
  for (const Flag& flag : program.flags)
    result += choice_line(program, flag);
  for (const Command& command : program.commands) {
    for (const Flag& flag : command.flags)
      result += choice_line(program, flag);
  }
  if (!result.empty()) result.pop_back();
  return result;
}

// Of those whose words are files.
std::string command_files(const Program& program) {
  std::string names;
  for (const Command& command : program.commands)
    if (command.files) names += std::string(command.name) + " ";
  return names.empty() ? ""
                       : "  elif [[ ' " + names +
                             "' == *\" $command \"* ]]; then\n"
                             "    compopt -o default\n";
}

// Those that are known behind a command only.
std::string command_flags(const Program& program) {
  std::string cases;
  for (const Command& command : program.commands) {
    std::vector<const Flag*> own;
    for (const Flag& flag : command.flags)
      own.push_back(&flag);
    if (!own.empty())
      cases += "      " + std::string(command.name) + ") offers+=' " + long_names(own) + "' ;;\n";
  }
  return cases.empty() ? "" : "    case $command in\n" + cases + "    esac\n";
}

}  // namespace

std::string bash_completion(const Program& program) {
  std::string script(kBashScript);
  const auto put = [&](std::string_view mark, std::string_view text) {
    script = replaced(std::move(script), mark, text);
  };
  const bool commands = !program.commands.empty();
  put("@WORDS@", program.runs_program ? kBashProgram
                                      : std::string(kWords).append(commands ? kBashCommands : ""));
  put("@WORD@", program.runs_program ? "break" : commands ? "command=${command:-$word}" : ":");
  put("@MODULE@", program.runs_program ? kModule : "");
  put("@FUNCTION@", function_name(program));
  put("@NAME@", program.name);
  put("@COMMANDS@", command_names(program));
  put("@COMMAND_FLAGS@", command_flags(program));
  put("@COMMAND_FILES@", command_files(program));
  put("@VALUES@", spellings(program, true));
  put("@SWITCHES@", spellings(program, false));
  put("@FLAGS@", long_names(offered(program)));
  put("@CHOICES@", choice_lines(program));
  return script;
}

}  // namespace drun::cli
