#include <cctype>
#include <map>

#include "base/closest_word.hpp"
#include "base/environment_variable.hpp"
#include "base/printable.hpp"
#include "base/whole_number.hpp"
#include "cli/parse.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

// "1" or "0": a switch's variable holds a number.
std::string switch_value(const std::string& name, const std::string& value) {
  const auto number = drun::whole_number<long long>(value);
  if (!number) throw UsageError(name + "=" + in_quotes(value) + ": expected 1 (on) or 0 (off)");
  return *number != 0 ? "1" : "0";
}

struct Named {
  const Flag* flag = nullptr;
  bool alias = false;
};
using Variables = std::map<std::string, Named>;

Variables by_variable(const Program& program) {
  Variables result;
  for (const Flag& flag : program.flags) {
    if (flag.has_variable()) result.emplace(variable_of(program, flag), Named{&flag, false});
  }
  for (const auto& [alias, name] : program.aliases)
    result.emplace(variable_named(program, alias), Named{program.find(name), true});
  return result;
}

// The prefix alone is no likeness.
std::string sets_nothing(std::string_view prefix, const std::string& name, const Variables& known) {
  std::vector<std::string> names;
  for (const auto& [each, named] : known)
    names.push_back(each.substr(prefix.size()));
  std::string written = name.substr(prefix.size());
  for (char& c : written)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const std::string meant = closest_word(written, names);
  return "the variable " + in_quotes(name) + " sets no flag" +
         (meant.empty() ? "" : "; did you mean " + std::string(prefix) + meant + "?");
}

// Those with the program's prefix. As getenv has it, the first of two with one name counts; a name
// of before counts only if today's name is not there.
void add_prefixed(const Program& program, const std::vector<std::string>& environment,
                  GivenFlags& flags, std::vector<std::string>& warnings) {
  Variables known;
  for (const bool aliases : {false, true}) {
    for (const std::string& entry : environment) {
      const auto equals = entry.find('=');
      if (equals == std::string::npos || !entry.starts_with(program.variable_prefix)) continue;
      if (known.empty()) known = by_variable(program);
      const std::string name = entry.substr(0, equals);
      const auto found = known.find(name);
      if (found == known.end()) {
        if (!aliases) warnings.push_back(sets_nothing(program.variable_prefix, name, known));
        continue;
      }
      const auto& [flag, alias] = found->second;
      if (alias != aliases) continue;
      if (equals + 1 == entry.size() && !flag->may_be_empty) continue;  // operators set such
      if (flags.find(flag->name) != nullptr) {
        flags.overrides(flag->name, entry);
        continue;
      }
      std::string value = entry.substr(equals + 1);
      if (!flag->takes_value()) value = switch_value(name, value);
      flags.set({flag, Source::Variable, name, std::move(value)});
    }
  }
}

}  // namespace

std::vector<std::string> add_variables(const Program& program,
                                       const std::vector<std::string>& environment,
                                       GivenFlags& flags) {
  std::vector<std::string> warnings;
  if (!program.variable_prefix.empty()) add_prefixed(program, environment, flags, warnings);
  for (const Variable& other : program.variables) {
    const auto given = environment_variable(environment, other.name);
    if (!given || (!other.only.empty() && other.only != given)) continue;
    if (flags.find(other.flag) != nullptr) {
      flags.overrides(other.flag, std::string(other.name) + "=" + *given);
      continue;
    }
    flags.set({program.find(other.flag), Source::Variable, std::string(other.name),
               other.value.empty() ? *given : std::string(other.value)});
  }
  return warnings;
}

}  // namespace drun::cli
