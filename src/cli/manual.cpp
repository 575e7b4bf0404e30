#include "cli/manual.hpp"

#include <cctype>

#include "cli/answer.hpp"

namespace drun::cli {
namespace {

std::string flag_entry(const Program& program, const Flag& flag) {
  std::string result = ".TP\n";
  const std::string brief = short_form(program, flag);
  if (!brief.empty()) result += "\\fB" + troff(brief) + "\\fR, ";
  result += "\\fB\\-\\-" + troff(flag.name) + "\\fR";
  if (flag.takes_value()) result += " \\fI" + troff(flag.metavar) + "\\fR";
  result += "\n" + troff(flag.help);
  if (!flag.fallback.empty() && flag.fallback != "default")
    result += " (default " + troff(flag.fallback) + ")";
  return result + ".\n";
}

std::string commands(const Program& program) {
  std::string result;
  for (const Command& command : program.commands) {
    result += troff_entry(command.usage(), command.help);
    if (command.flags.empty()) continue;
    result += ".RS\n";
    for (const Flag& flag : command.flags)
      result += flag_entry(program, flag);
    result += ".RE\n";
  }
  return result.empty() ? "" : ".SH COMMANDS\n" + result;
}

constexpr std::string_view kDocuments =
    "The documents, in /usr/share/doc/drun/docs or below the folder that drun was installed to:\n"
    "index.md lists them, troubleshooting.md goes from what drun says to what helps,\n"
    "compatibility.md has every difference from torchrun.\n";

std::string see_also(std::string_view own) {
  std::string result;
  for (const std::string_view name : {"drun", "drun-store", "drunctl"}) {
    if (name != own) result += (result.empty() ? "" : ",\n") + (".BR " + troff(name) + " (1)");
  }
  return ".SH \"SEE ALSO\"\n" + result + "\n.PP\n.nh\n" + troff(kDocuments);
}

ManualText plain_text(const Program& program) {
  ManualText text;
  text.synopsis = ".B " + troff(program.usage);
  text.description = troff(program.about);
  text.sections = ".SH NOTES\n" + troff(program.notes);
  if (!program.variables.empty()) text.sections += ".SH ENVIRONMENT\n" + troff_variables(program);
  return text;
}

std::string upper(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string troff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += "\\&";
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string troff_entry(std::string_view name, std::string_view text) {
  return ".TP\n.B " + troff(name) + "\n" + troff(text) + "\n";
}

std::string troff_variables(const Program& program) {
  std::string result;
  for (const Variable& variable : program.variables) {
    const std::string flag = "--" + std::string(variable.flag);
    const std::string text = variable.value.empty()
                                 ? "sets " + flag
                                 : "if it is " + std::string(variable.only) + ", sets " + flag +
                                       " to " + std::string(variable.value);
    result += troff_entry(variable.name, text);
  }
  return result;
}

std::string manual_page(const Program& program) {
  const ManualText text = program.manual != nullptr ? program.manual() : plain_text(program);
  const std::string name = troff(program.name);
  std::string page = ".TH " + upper(name) + " 1 \"\" \"" + version_text(program) +
                     "\" \"User Commands\"\n.SH NAME\n" + name + " \\- " + troff(program.purpose) +
                     "\n.SH SYNOPSIS\n" + text.synopsis + ".SH DESCRIPTION\n" + text.description +
                     commands(program);
  for (const std::string_view group : program.groups()) {
    page += ".SH \"" + std::string(group) + "\"\n";
    for (const Flag& flag : program.flags)
      if (flag.group == group) page += flag_entry(program, flag);
    if (group == text.group) page += text.below_group;
  }
  return page + text.sections + see_also(program.name);
}

}  // namespace drun::cli
