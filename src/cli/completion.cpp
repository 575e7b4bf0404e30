#include "cli/completion.hpp"

#include "cli/answer.hpp"

namespace drun::cli {
namespace {

bool is_offered(const Program& program, const Flag& flag) {
  return program.knows(flag) && (flag.group != program.minor_group || program.minor_group.empty());
}

}  // namespace

Choices choices_of(const Flag& flag) {
  using enum Choices::Kind;
  if (flag.choices.empty()) return {None, {}};
  if (flag.choices == "FILE") return {File, {}};
  if (flag.choices == "DIR") return {Folder, {}};
  if (flag.choices.starts_with(',')) return {List, flag.choices.substr(1)};
  return {One, flag.choices};
}

std::string action_for(const Flag& flag, const Actions& actions) {
  using enum Choices::Kind;
  const Choices choices = choices_of(flag);
  const std::string_view action = choices.kind == File     ? actions.file
                                  : choices.kind == Folder ? actions.folder
                                  : choices.kind == One    ? actions.one
                                  : choices.kind == List   ? actions.list
                                                           : actions.none;
  return replaced(std::string(action), "@THESE@", choices.words);
}

std::vector<const Flag*> offered(const Program& program) {
  std::vector<const Flag*> result;
  for (const Flag& flag : program.flags) {
    if (is_offered(program, flag)) result.push_back(&flag);
  }
  return result;
}

std::vector<Spelling> unoffered(const Program& program) {
  std::vector<Spelling> result;
  for (const Flag& flag : program.flags) {
    if (!is_offered(program, flag)) result.push_back({"--" + std::string(flag.name), &flag});
  }
  for (const auto& [alias, name] : program.aliases)
    result.push_back({"--" + std::string(alias), program.find(name)});
  for (const Flag& flag : program.flags) {
    std::string name = replaced(std::string(flag.name), "-", "_");
    if (name != flag.name) result.push_back({"--" + std::move(name), &flag});
  }
  return result;
}

std::string spellings(const Program& program, bool with_value) {
  std::string result;
  const auto add = [&](const Flag& flag, const std::string& name) {
    if (flag.takes_value() == with_value) result += (result.empty() ? "" : " ") + name;
  };
  const auto add_flag = [&](const Flag& flag) {
    add(flag, "--" + std::string(flag.name));
    if (const std::string brief = short_form(program, flag); !brief.empty()) add(flag, brief);
  };
  for (const Flag& flag : program.flags)
    add_flag(flag);
  for (const Command& command : program.commands) {
    for (const Flag& flag : command.flags)
      add_flag(flag);
  }
  for (const auto& [alias, name] : program.aliases)
    add(*program.find(name), "--" + std::string(alias));
  return result;
}

std::string long_names(std::span<const Flag* const> flags) {
  std::string result;
  for (const Flag* flag : flags)
    result += (result.empty() ? "--" : " --") + std::string(flag->name);
  return result;
}

std::string command_names(const Program& program) {
  std::string result;
  for (const Command& command : program.commands)
    result += (result.empty() ? "" : " ") + std::string(command.name);
  return result;
}

std::string function_name(const Program& program) {
  return replaced("_" + std::string(program.name), "-", "_");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string completion_script(const Program& called, std::string_view shell) {
  Program program = called;
  if (program.launch) program.name = program.launch_name;
  if (shell == "bash") return bash_completion(program);
  return shell == "zsh" ? zsh_completion(program) : fish_completion(program);
}

}  // namespace drun::cli
