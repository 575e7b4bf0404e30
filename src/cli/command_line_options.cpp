#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "cli/command_line.hpp"

namespace drun::store {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kTextColumn = 27;
constexpr const char* kGeneral = "General";

using Options = std::vector<const CLI::Option*>;
using Apps = std::vector<const CLI::App*>;

Options options_of(const CLI::App& app, const std::string& group) {
  return app.get_options([&](const CLI::Option* option) { return option->get_group() == group; });
}

// The headings in the order of their first option; the general ones last.
std::vector<std::string> groups_of(const CLI::App& app) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (group != kGeneral && std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }
  groups.emplace_back(kGeneral);
  return groups;
}

Apps commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// "-h, --help", "--timeout TIME".
std::string option_name(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames())
    text += "-" + name + ", ";
  for (const std::string& name : option.get_lnames())
    text += "--" + name + ", ";
  text.resize(text.size() - 2);
  return takes_value(option) ? text + " " + option.get_type_name() : text;
}

std::string command_name(const CLI::App& command) {
  const std::string& words = command.get_footer();
  return words.empty() ? command.get_name() : command.get_name() + " " + words;
}

std::string synopsis(const CLI::App& app) {
  const std::string words = commands_of(app).empty() ? "" : " COMMAND [arguments]";
  return app.get_name() + " [options]" + words;
}

// "  name   text", the text wrapped in its column.
void add_entry(std::string& out, std::size_t indent, const std::string& name,
               const std::string& text) {
  std::string line = std::string(indent, ' ') + name;
  if (line.size() + 2 > kTextColumn) {
    out += line + "\n";
    line.clear();
  }
  line.resize(kTextColumn, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool first = line.size() == kTextColumn;
    if (!first && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line = std::string(kTextColumn, ' ') + word;
    } else {
      line += (first ? "" : " ") + word;
    }
  }
  out += line + "\n";
}

// Text for troff: no line may begin with its control characters, and a dash is to be one.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

void add_manual_entry(std::string& out, const std::string& name, const std::string& text) {
  out += ".TP\n.B " + troff(name) + "\n" + troff(text) + "\n";
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

// Every "--name" of the app and its commands, each once.
std::vector<const CLI::Option*> all_options(const CLI::App& app) {
  Options found = app.get_options();
  for (const CLI::App* command : commands_of(app)) {
    const Options more = command->get_options();
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

// In single quotes, for all three shells.
std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string bash_completion(const CLI::App& app) {
  const std::string& name = app.get_name();
  std::string function = "_" + name;
  std::replace(function.begin(), function.end(), '-', '_');
  std::string words;
  for (const CLI::App* command : commands_of(app))
    words += command->get_name() + " ";
  for (const CLI::Option* option : all_options(app))
    words += "--" + option->get_lnames().front() + " ";
  return function + "() {\n  local current=${COMP_WORDS[COMP_CWORD]}\n" +
         "  mapfile -t COMPREPLY < <(compgen -W " + shell_quoted(words) + " -- \"$current\")\n}\n" +
         "complete -o default -F " + function + " " + name + "\n";
}

std::string zsh_completion(const CLI::App& app) {
  // A colon ends the word that is described.
  const auto described = [](const std::string& word, const std::string& text) {
    return "  " + shell_quoted(word + ":" + text) + "\n";
  };
  std::string out = "#compdef " + app.get_name() + "\nlocal -a commands options\ncommands=(\n";
  for (const CLI::App* command : commands_of(app))
    out += described(command->get_name(), command->get_description());
  out += ")\noptions=(\n";
  for (const CLI::Option* option : all_options(app))
    out += described("--" + option->get_lnames().front(), option->get_description());
  return out +
         ")\nif [[ $words[CURRENT] == -* ]]; then\n  _describe option options\n"
         "elif (( CURRENT == 2 && $#commands )); then\n  _describe command commands\n"
         "else\n  _files\nfi\n";
}

std::string fish_completion(const CLI::App& app) {
  const std::string start = "complete -c " + app.get_name();
  std::string out;
  for (const CLI::App* command : commands_of(app)) {
    out += start + " -n __fish_use_subcommand -a " + command->get_name() + " -d " +
           shell_quoted(command->get_description()) + "\n";
  }
  for (const CLI::Option* option : all_options(app)) {
    out += start + " -l " + option->get_lnames().front() + (takes_value(*option) ? " -r" : "") +
           " -d " + shell_quoted(option->get_description()) + "\n";
  }
  return out;
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string out = "Usage: " + synopsis(app) + "\n\n" + app.get_description() + "\n";
  const Apps commands = commands_of(app);
  if (!commands.empty()) out += "\n";
  for (const CLI::App* command : commands) {
    add_entry(out, 2, command_name(*command), command->get_description());
    for (const CLI::Option* option : command->get_options())
      add_entry(out, 4, option_name(*option), option->get_description());
  }
  for (const std::string& group : groups_of(app)) {
    out += "\n" + (group == kGeneral ? "" : group + ":\n");
    for (const CLI::Option* option : options_of(app, group))
      add_entry(out, 2, option_name(*option), option->get_description());
  }
  return out + "\n" + app.get_footer() + "\n";
}

std::string manual_page(const CLI::App& app) {
  const std::string& name = app.get_name();
  const std::string& description = app.get_description();
  std::string out = ".TH " + upper(troff(name)) + " 1\n.SH NAME\n" + troff(name) + " \\- " +
                    troff(description.substr(0, description.find(". "))) + "\n.SH SYNOPSIS\n.B " +
                    troff(synopsis(app)) + "\n.SH DESCRIPTION\n" + troff(description) + "\n";
  const Apps commands = commands_of(app);
  if (!commands.empty()) out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands) {
    add_manual_entry(out, command_name(*command), command->get_description());
    if (command->get_options().empty()) continue;
    out += ".RS\n";
    for (const CLI::Option* option : command->get_options())
      add_manual_entry(out, option_name(*option), option->get_description());
    out += ".RE\n";
  }
  out += ".SH OPTIONS\n";
  for (const std::string& group : groups_of(app)) {
    if (group != kGeneral) out += ".SS " + troff(group) + "\n";
    for (const CLI::Option* option : options_of(app, group))
      add_manual_entry(out, option_name(*option), option->get_description());
  }
  return out + ".SH NOTES\n" + troff(app.get_footer()) +
         "\n.SH SEE ALSO\n.BR drun (1),\n.BR drun\\-store (1),\n.BR drunctl (1)\n";
}

std::string completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_completion(app);
  if (shell == "zsh") return zsh_completion(app);
  if (shell == "fish") return fish_completion(app);
  throw UsageError("--print-completion '" + shell + "': expected bash, zsh or fish");
}

}  // namespace drun::store
