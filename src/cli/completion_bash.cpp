#include "cli/completion.hpp"

namespace drun::cli {
namespace {

// `program`: "--" has been seen. `module`: the program is a Python module, which is no file.
constexpr std::string_view kScript =
    R"(# bash completion for @NAME@:  source <(@NAME@ --print-completion bash)
@FUNCTION@() {
  local values=' @VALUES@ '
  local cur=${COMP_WORDS[COMP_CWORD]} i=1 word flag= module= program= words=0
  COMPREPLY=()
  while (( i < COMP_CWORD )); do
    word=${COMP_WORDS[i]}
    flag=
    case $word in
      --)
        program=1
        (( ++i ))
        break
        ;;
@MODULE@      -*)
        if [[ $values == *" ${word//_/-} "* ]]; then
          flag=${word//_/-}
          (( ++i ))
          # "--flag=value" comes as three words.
          if [[ ${COMP_WORDS[i]} == '=' ]]; then
            if (( i == COMP_CWORD )); then
              cur=
              break
            fi
            (( ++i ))
          fi
          (( i >= COMP_CWORD )) && break
          flag=
        fi
        ;;
      *)
        @WORD@
        ;;
    esac
    (( ++i ))
  done
  if [[ -n $flag ]]; then
    case $flag in
@CHOICES@
    esac
    return
  fi
@WORDS@}
complete -F @FUNCTION@ @NAME@
)";

constexpr std::string_view kModule = R"(      -m | --module)
        module=1
        ;;
)";

// What follows the program is completed as for the program alone.
constexpr std::string_view kProgram = R"(  if (( i < COMP_CWORD )); then
    if [[ -z $module ]] && declare -F _command_offset > /dev/null; then
      _command_offset "$i"
    else
      compopt -o default
    fi
  elif [[ $cur == -* && -z $program ]]; then
    COMPREPLY=($(compgen -W '@FLAGS@' -- "$cur"))
  elif [[ -z $module ]]; then
    compopt -o filenames
    COMPREPLY=($(compgen -c -- "$cur") $(compgen -f -- "$cur"))
  fi
)";

constexpr std::string_view kWords = R"(  if [[ $cur == -* && -z $program ]]; then
    COMPREPLY=($(compgen -W '@FLAGS@' -- "$cur"))
  elif (( words == 0 )) && [[ -n '@COMMANDS@' ]]; then
    COMPREPLY=($(compgen -W '@COMMANDS@' -- "$cur"))
  else
    compopt -o default
  fi
)";

// How the flag's value is completed; "": not at all.
std::string action(const Flag& flag) {
  if (flag.choices == "FILE") return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
  if (flag.choices == "DIR") return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
  if (flag.choices.empty()) return "";
  return "COMPREPLY=($(compgen -W '" + std::string(flag.choices) + "' -- \"$cur\"))";
}

}  // namespace

std::string bash_completion(const Program& program) {
  std::string values;
  std::string flags;
  std::string choices;
  for (const Flag* flag : offered(program)) {
    const std::string name = "--" + std::string(flag->name);
    flags += (flags.empty() ? "" : " ") + name;
    if (!flag->takes_value()) continue;
    std::string patterns = name;
    values += (values.empty() ? "" : " ") + name;
    if (flag->letter != 0) {
      const std::string letter{'-', flag->letter};
      values += " " + letter;
      patterns += " | " + letter;
    }
    const std::string what = action(*flag);
    if (what.empty()) continue;
    if (!choices.empty()) choices += '\n';
    choices.append("      ").append(patterns).append(") ").append(what).append(" ;;");
  }
  std::string script(kScript);
  const auto put = [&](std::string_view mark, std::string_view text) {
    script = replaced(std::move(script), mark, text);
  };
  put("@WORDS@", program.runs_program ? kProgram : kWords);
  put("@WORD@", program.runs_program ? "break" : "(( ++words ))");
  put("@MODULE@", program.runs_program ? kModule : "");
  put("@FUNCTION@", function_name(program));
  put("@NAME@", program.name);
  put("@COMMANDS@", command_names(program));
  put("@VALUES@", values);
  put("@FLAGS@", flags);
  put("@CHOICES@", choices);
  return script;
}

}  // namespace drun::cli
