#include "cli/completion.hpp"

#include <algorithm>

#include "cli/answer.hpp"

namespace drun::cli {

std::vector<const Flag*> offered(const Program& program) {
  std::vector<const Flag*> result;
  const auto add = [&](std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      if (flag.group != program.minor_group || flag.group.empty()) result.push_back(&flag);
    }
  };
  add(program.flags);
  std::erase_if(result, [](const Flag* flag) { return flag->origin == Origin::Launch; });
  for (const Command& command : program.commands)
    add(command.flags);
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

std::string completion_script(const Program& program, std::string_view shell) {
  if (shell == "bash") return bash_completion(program);
  return shell == "zsh" ? zsh_completion(program) : fish_completion(program);
}

}  // namespace drun::cli
