#include <map>

#include "base/environment_variable.hpp"
#include "base/whole_number.hpp"
#include "cli/parse.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

// "1" or "0": a switch's variable holds a number.
std::string switch_value(const std::string& name, const std::string& value) {
  const auto number = drun::whole_number<long long>(value);
  if (!number) throw UsageError(name + "=" + quote(value) + ": expected 1 (on) or 0 (off)");
  return *number != 0 ? "1" : "0";
}

std::map<std::string, const Flag*> by_variable(const Program& program) {
  std::map<std::string, const Flag*> result;
  for (const Flag& flag : program.flags) {
    if (flag.has_variable()) result.emplace(variable_of(program, flag), &flag);
  }
  return result;
}

// Those with the program's prefix. As getenv has it, the first of two with one name counts.
void add_prefixed(const Program& program, const std::vector<std::string>& environment,
                  GivenFlags& flags) {
  std::map<std::string, const Flag*> known;
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    if (equals == std::string::npos || !entry.starts_with(program.variable_prefix)) continue;
    if (known.empty()) known = by_variable(program);
    const auto found = known.find(entry.substr(0, equals));
    if (found == known.end() || flags.find(found->second->name) != nullptr) continue;
    std::string value = entry.substr(equals + 1);
    if (!found->second->takes_value()) value = switch_value(found->first, value);
    flags.set({found->second, Source::Variable, found->first, std::move(value)});
  }
}

}  // namespace

void add_variables(const Program& program, const std::vector<std::string>& environment,
                   GivenFlags& flags) {
  if (!program.variable_prefix.empty()) add_prefixed(program, environment, flags);
  for (const Variable& other : program.variables) {
    const auto given = environment_variable(environment, other.name);
    if (!given || flags.find(other.flag) != nullptr) continue;
    if (!other.only.empty() && other.only != given) continue;
    flags.set({program.find(other.flag), Source::Variable, std::string(other.name),
               other.value.empty() ? *given : std::string(other.value)});
  }
}

}  // namespace drun::cli
