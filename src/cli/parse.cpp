// The only file that sees CLI11. It decides which word is a flag's value, which is a command, whose
// flag a flag is, and where the flags end. Spellings are canonical()'s: CLI11 abbreviates no flags,
// and has no --flag= with an empty value.
#include "cli/parse.hpp"

#include <algorithm>
#include <set>

#include <CLI/CLI.hpp>

#include "cli/canonical.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

using Uses = std::vector<Canonical::Use>;

std::string spellings(const Flag& flag) {
  const std::string name = "--" + std::string(flag.name);
  return flag.letter == 0 ? name : std::string{'-', flag.letter, ','} + name;
}

// An app with only the flags that were given: all of drun's would take CLI11 longer than
// the rest of the command line.
void add_flags(CLI::App& app, const Program& program, const Uses& used) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::map<const Flag*, CLI::App*> owners;
  for (const Command& command : program.commands) {
    CLI::App* owner = app.add_subcommand(std::string(command.name));
    for (const Flag& flag : command.flags)
      owners[&flag] = owner;
  }
  std::set<const Flag*> added;
  for (const auto& use : used) {
    const Flag& flag = *use.flag;
    if (!added.insert(&flag).second) continue;
    const auto found = owners.find(&flag);
    CLI::App& owner = found == owners.end() ? app : *found->second;
    if (flag.takes_value()) {
      owner.add_option(spellings(flag))->expected(1);
    } else {
      owner.add_flag(spellings(flag));
    }
  }
}

std::string value_of(const Flag& flag, const CLI::Option& option) {
  if (!flag.takes_value()) return "1";
  if (!flag.repeats) return option.results().back();
  std::string all;
  for (const std::string& value : option.results()) {
    if (&value != &option.results().front()) all += kBetweenValues;
    all += value;
  }
  return all;
}

// If a flag comes twice that does not repeat, the last value counts, with its spelling.
void read_flags(const CLI::App& app, const Uses& used, GivenFlags& flags) {
  for (const auto& [flag, shown] : used) {
    const CLI::Option* option = app.get_option_no_throw("--" + std::string(flag->name));
    if (option == nullptr || option->count() == 0) continue;
    flags.set({flag, Source::Flag, shown, value_of(*flag, *option)});
  }
}

}  // namespace

void GivenFlags::set(Setting setting) {
  const std::string_view name = setting.flag->name;
  settings_.insert_or_assign(name, std::move(setting));
}

void GivenFlags::overrides(std::string_view name, std::string variable) {
  const auto found = settings_.find(name);
  if (found == settings_.end() || found->second.source != Source::Flag) return;
  if (found->second.over.empty()) found->second.over = std::move(variable);
}

const Setting* GivenFlags::find(std::string_view name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

bool GivenFlags::on(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->value != "0";
}

CommandLine parse_command_line(const Program& program, const std::vector<std::string>& arguments) {
  Canonical line = canonical(program, arguments);
  CLI::App app;
  app.set_help_flag();
  app.require_subcommand(0, 1);  // a second command's name is a word
  app.allow_extras();
  app.fallthrough();
  app.prefix_command(program.runs_program);
  add_flags(app, program, line.used);
  std::reverse(line.arguments.begin(), line.arguments.end());  // as CLI11 takes them
  try {
    app.parse(std::move(line.arguments));
  } catch (const CLI::ParseError& error) {  // whatever canonical() let pass
    throw UsageError(error.what());
  }
  CommandLine result;
  read_flags(app, line.used, result.flags);
  for (const CLI::App* command : app.get_subcommands()) {
    read_flags(*command, line.used, result.flags);
    result.command = program.find_command(command->get_name());
  }
  result.words = app.remaining(true);
  result.words.insert(result.words.end(), line.only_words.begin(), line.only_words.end());
  return result;
}

}  // namespace drun::cli
