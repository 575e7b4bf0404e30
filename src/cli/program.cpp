#include "cli/program.hpp"

#include <algorithm>
#include <cctype>

namespace drun::cli {
namespace {

template <typename Named>
const Named* named(std::span<const Named> all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const Flag* Program::find(std::string_view flag, const Command* command) const {
  const Flag* found = command == nullptr ? nullptr : named(command->flags, flag);
  if (found == nullptr) found = named(flags, flag);
  for (const auto& [alias, meant] : aliases)
    if (found == nullptr && alias == flag) found = named(flags, meant);
  return found != nullptr && knows(*found) ? found : nullptr;
}

bool Program::is_alias(std::string_view flag) const {
  return std::any_of(aliases.begin(), aliases.end(),
                     [&](const auto& alias) { return alias.first == flag; });
}

const Command* Program::find_command(std::string_view command) const {
  return named(commands, command);
}

std::vector<std::string_view> Program::groups() const {
  std::vector<std::string_view> result;
  for (const Flag& flag : flags) {
    if (std::find(result.begin(), result.end(), flag.group) == result.end())
      result.push_back(flag.group);
  }
  return result;
}

std::string short_form(const Program& program, const Flag& flag) {
  if (flag.letter != 0) return {'-', flag.letter};
  for (const auto& [word, meant] : program.words)
    if (program.find(meant) == &flag) return std::string(word);
  return "";
}

std::vector<const Flag*> known_flags(const Program& program, const Command* command) {
  std::vector<const Flag*> result;
  for (const Flag& flag : program.flags)
    if (program.knows(flag)) result.push_back(&flag);
  if (command == nullptr) return result;
  for (const Flag& flag : command->flags)
    result.push_back(&flag);
  return result;
}

std::string variable_named(const Program& program, std::string_view flag) {
  std::string result(program.variable_prefix);
  for (const char c : flag)
    result += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string variable_of(const Program& program, const Flag& flag) {
  if (program.variable_prefix.empty() || !flag.has_variable()) return "";
  return variable_named(program, flag.name);
}

}  // namespace drun::cli
