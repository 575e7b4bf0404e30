#include <algorithm>

#include "cli/answer.hpp"

namespace drun::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // where descriptions begin

// Words of `text` in lines from column kColumn to kWidth; the first line begins there.
void append_wrapped(std::string& result, std::string_view text) {
  std::size_t at = kColumn;
  while (!text.empty()) {
    const auto blank = std::min(text.find(' '), text.size());
    const bool start = at == kColumn;
    if (!start && at + 1 + blank > kWidth) {
      result += "\n" + std::string(kColumn, ' ');
      at = kColumn;
    } else if (!start) {
      result += ' ';
      ++at;
    }
    result += text.substr(0, blank);
    at += blank;
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  result += "\n";
}

void append_entry(std::string& result, const std::string& name, std::string_view text) {
  result += name;
  if (name.size() + 2 > kColumn) {
    result += "\n" + std::string(kColumn, ' ');
  } else {
    result += std::string(kColumn - name.size(), ' ');
  }
  append_wrapped(result, text);
}

void append_flag(std::string& result, const Program& program, const Flag& flag) {
  const std::string brief = short_form(program, flag);
  std::string name = brief.empty() ? "      " : "  " + brief + ", ";
  name += "--" + std::string(flag.name);
  if (flag.takes_value()) name += " " + std::string(flag.metavar);
  std::string help(flag.help);
  if (!flag.fallback.empty() && flag.fallback != "default")
    help += " (default " + std::string(flag.fallback) + ")";
  append_entry(result, name, help);
}

std::string head(const Program& program) {
  return "usage: " + std::string(program.usage) + "\n" + std::string(program.about);
}

}  // namespace

std::string brief_help(const Program& program) {
  if (program.brief.empty()) return help_text(program, false);
  std::string result = head(program) + "\nThe flags used most:\n";
  for (const std::string_view name : program.brief)
    append_flag(result, program, *program.find(name));
  return result + "\n" + std::string(program.name) + " --help lists all flags.\n";
}

std::string command_help(const Program& program, const Command& command) {
  const std::string name(program.name);
  std::string result = "usage: " + name + " [flags] " + command.usage() + "\n\n";
  append_entry(result, "  " + std::string(command.name), command.help);
  for (const Flag& flag : command.flags)
    append_flag(result, program, flag);
  return result + "\n" + name + " --help has the flags of all commands.\n";
}

std::string help_text(const Program& program, bool all) {
  std::string result = head(program);
  if (!program.commands.empty()) result += "\nCommands:\n";
  for (const Command& command : program.commands) {
    append_entry(result, "  " + command.usage(), command.help);
    for (const Flag& flag : command.flags)
      append_flag(result, program, flag);
  }
  for (const std::string_view group : program.groups()) {
    if (group == program.minor_group && !all) continue;
    result += "\n" + std::string(group) + ":\n";
    for (const Flag* flag : known_flags(program, nullptr))
      if (flag->group == group) append_flag(result, program, *flag);
  }
  return result + "\n" + std::string(program.notes);
}

}  // namespace drun::cli
