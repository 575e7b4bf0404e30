#include "launcher/command_line/options_completion.hpp"

#include <vector>

#include "launcher/command_line/options_table.hpp"

namespace drun::launcher {
namespace {

std::vector<const Flag*> offered() {
  std::vector<const Flag*> result;
  for (const Flag& flag : all_flags()) {
    if (flag.readiness == Readiness::Ready && flag.origin != Origin::Launch &&
        flag.group != Group::Compatibility) {
      result.push_back(&flag);
    }
  }
  return result;
}

std::string long_name(const Flag& flag) {
  return "--" + std::string(flag.name);
}

// `text` between single quotes, for any of the three shells once `escaped` says how a quote is
// written inside.
std::string in_quotes(std::string_view text, std::string_view escaped) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += escaped;
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// ---- bash ----

constexpr std::string_view kBash =
    R"(# bash completion for drun:  source <(drun --print-completion bash)
_drun() {
  local values=' @VALUES@ '
  local cur=${COMP_WORDS[COMP_CWORD]} i=1 word flag= module= program=
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
      -m | --module)
        module=1
        ;;
      -*)
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
        break
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
  if (( i < COMP_CWORD )); then
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
}
complete -F _drun drun
)";

std::string bash_script() {
  std::string values;
  std::string flags;
  std::string choices;
  for (const Flag* flag : offered()) {
    const std::string name = long_name(*flag);
    flags += (flags.empty() ? "" : " ") + name;
    if (flag->arity == Arity::Switch) continue;
    std::string patterns = name;
    values += (values.empty() ? "" : " ") + name;
    if (flag->letter != 0) {
      const std::string letter{'-', flag->letter};
      values += " " + letter;
      patterns += " | " + letter;
    }
    std::string action;
    if (flag->choices == "FILE") {
      action = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
    } else if (flag->choices == "DIR") {
      action = "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
    } else if (!flag->choices.empty()) {
      action = "COMPREPLY=($(compgen -W '" + std::string(flag->choices) + "' -- \"$cur\"))";
    } else {
      continue;
    }
    if (!choices.empty()) choices += '\n';
    choices.append("      ").append(patterns).append(") ").append(action).append(" ;;");
  }
  std::string script(kBash);
  script = replaced(std::move(script), "@VALUES@", values);
  script = replaced(std::move(script), "@FLAGS@", flags);
  return replaced(std::move(script), "@CHOICES@", choices);
}

// ---- zsh ----

// Inside _arguments, colons and brackets have a meaning.
std::string zsh_text(std::string_view text) {
  std::string result(text);
  for (const char* special : {"\\", ":", "[", "]"}) {
    result = replaced(std::move(result), special, "\\" + std::string(special));
  }
  return result;
}

std::string zsh_action(const Flag& flag) {
  if (flag.choices == "FILE") return "_files";
  if (flag.choices == "DIR") return "_files -/";
  return flag.choices.empty() ? " " : "(" + std::string(flag.choices) + ")";
}

std::string zsh_script() {
  std::string script =
      "#compdef drun\n"
      "# zsh completion for drun: save as _drun in a folder of $fpath, or\n"
      "#   source <(drun --print-completion zsh)   after compinit\n"
      "_drun() {\n"
      "  _arguments -s -S \\\n";
  for (const Flag* flag : offered()) {
    const bool toggle = flag->arity == Arity::Switch;
    const std::string tail =
        "[" + zsh_text(flag->help) + "]" +
        (toggle ? "" : ":" + zsh_text(flag->metavar) + ":" + zsh_action(*flag));
    const auto add = [&](const std::string& name) {
      script += "    " + in_quotes(name + tail, "'\\''") + " \\\n";
    };
    add("*" + long_name(*flag) + (toggle ? "" : "="));
    if (flag->letter != 0) add("*-" + std::string(1, flag->letter) + (toggle ? "" : "+"));
  }
  script +=
      "    '(-)1:program:{_command_names -e; _files}' \\\n"
      "    '*::arguments:_normal'\n"
      "}\n"
      "if [[ ${funcstack[1]} == _drun ]]; then\n"
      "  _drun \"$@\"\n"
      "else\n"
      "  compdef _drun drun\n"
      "fi\n";
  return script;
}

// ---- fish ----

constexpr std::string_view kFishHead =
    R"(# fish completion for drun:  drun --print-completion fish | source
function __drun_program --description 'The program on the command line, and what follows it'
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
function __drun_complete_program
    set -l words (__drun_program) (commandline -ct)
    complete -C (string join ' ' -- (string escape -- $words[1..-2]) $words[-1])
end
complete -c drun -f
complete -c drun -n 'not __drun_program >/dev/null' -a '(__fish_complete_command)'
complete -c drun -n '__drun_program >/dev/null' -a '(__drun_complete_program)'
)";

std::string fish_script() {
  std::string values;
  std::string lines;
  for (const Flag* flag : offered()) {
    const bool toggle = flag->arity == Arity::Switch;
    if (!toggle) {
      values += (values.empty() ? "" : " ") + long_name(*flag);
      if (flag->letter != 0) values += " -" + std::string(1, flag->letter);
    }
    lines += "complete -c drun -n 'not __drun_program >/dev/null' -l " + std::string(flag->name);
    if (flag->letter != 0) lines += " -s " + std::string(1, flag->letter);
    if (flag->choices == "FILE") {
      lines += " -r -F";
    } else if (flag->choices == "DIR") {
      lines += " -x -a '(__fish_complete_directories)'";
    } else if (!toggle) {
      lines += " -x";
      if (!flag->choices.empty()) lines += " -a " + in_quotes(flag->choices, "\\'");
    }
    lines += " -d " + in_quotes(flag->help, "\\'") + "\n";
  }
  return replaced(std::string(kFishHead), "@VALUES@", values) + lines;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  return shell == "zsh" ? zsh_script() : fish_script();
}

}  // namespace drun::launcher
