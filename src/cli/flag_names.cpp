#include "cli/flag_names.hpp"

#include <algorithm>

#include "base/closest_word.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"

namespace drun::cli {
namespace {

// What to do instead of a flag that other programs have; empty: it is none of these. `name` has its
// dashes.
std::string_view meant_elsewhere(const Program& program, std::string_view name) {
  const auto found = std::find_if(program.habits.begin(), program.habits.end(),
                                  [name](const auto& habit) { return habit.first == name; });
  return found == program.habits.end() ? std::string_view() : found->second;
}

// "; did you mean --nnodes?", what to do instead, or nothing.
std::string suggestion(const Program& program, const Command* command, std::string_view written) {
  const std::string name = dashed(written);
  if (const auto habit = meant_elsewhere(program, name); !habit.empty()) {
    const bool flag = habit.starts_with('-') && habit.find(' ') == std::string_view::npos;
    return flag ? "; did you mean " + std::string(habit) + "?" : "; " + std::string(habit);
  }
  std::vector<std::string> names;
  for (const Flag* flag : known_flags(program, command))
    names.emplace_back(flag->name);
  const std::size_t dashes = written.starts_with("--") ? 2 : 1;
  const std::string meant = closest_word(name.substr(dashes), names);
  return meant.empty() ? "" : "; did you mean --" + meant + "?";
}

[[noreturn]] void unknown(const Program& program, const Command* command,
                          std::string_view written) {
  const char* const more = program.runs_program
                               ? " --help lists them; the program's own flags go after the program)"
                               : " --help lists them)";
  throw UsageError("unknown flag " + in_quotes(written) + suggestion(program, command, written) +
                   " (" + std::string(program.name) + more);
}

// The flag that alone begins with `name`, among drun's own or all others; nullptr: none does.
const Flag* abbreviated(const Program& program, std::string_view name, bool own,
                        std::string_view written) {
  const Flag* found = nullptr;
  std::string names;
  bool unique = true;
  for (const Flag* flag : known_flags(program, nullptr)) {
    if (!flag->name.starts_with(name) || (flag->origin == Origin::Own) != own) continue;
    unique = found == nullptr;
    names += (unique ? "--" : ", --") + std::string(flag->name);
    found = flag;
  }
  if (!unique) throw UsageError("the flag " + in_quotes(written) + " is ambiguous: " + names);
  return found;
}

}  // namespace

std::string dashed(std::string_view written) {
  std::string result(written);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

const Flag& flag_named(const Program& program, const Command* command, std::string_view written) {
  const std::string name = dashed(written.substr(2));
  if (const Flag* exact = program.find(name, command)) return *exact;
  if (program.runs_program) {
    // torchrun's abbreviations mean what they mean there, whatever drun adds.
    for (const bool own : {false, true}) {
      // Of drun's own flags none is meant by what has another meaning elsewhere.
      if (own && !meant_elsewhere(program, dashed(written)).empty()) break;
      if (const Flag* flag = abbreviated(program, name, own, written)) return *flag;
    }
  }
  unknown(program, command, written);
}

const Flag& flag_lettered(const Program& program, const Command* command, char letter,
                          std::string_view argument) {
  for (const Flag* flag : known_flags(program, command)) {
    if (flag->letter == letter && letter != 0) return *flag;
  }
  unknown(program, command, argument);
}

}  // namespace drun::cli
