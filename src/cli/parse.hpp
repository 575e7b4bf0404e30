// What was given on a command line and in variables. The environment is an argument: nobody here
// calls getenv.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"

namespace drun::cli {

enum class Source {
  Default,
  Inferred,  // from what is around the program: nobody said so to it
  Variable,
  Flag
};

// One value that was given, and how the user wrote the name ("--nnodes", "-r", "PET_NNODES").
struct Setting {
  const Flag* flag = nullptr;
  Source source = Source::Default;
  std::string shown;
  std::string value;   // "1" or "0" for a switch
  std::string over{};  // the variable that it overrides: "PET_NNODES=2"
};

// What was given, by flag name; a flag wins over its variable, the last of several wins.
class GivenFlags {
 public:
  void set(Setting setting);
  // Keeps in mind that the flag `name` won over this variable, the first of several.
  void overrides(std::string_view name, std::string variable);
  // nullptr: not given.
  [[nodiscard]] const Setting* find(std::string_view name) const;
  // For switches.
  [[nodiscard]] bool on(std::string_view name) const;

 private:
  std::map<std::string_view, Setting> settings_;
};

struct CommandLine {
  GivenFlags flags;
  const Command* command = nullptr;  // nullptr: none was named
  // All else: the program and its arguments, or the words after the command.
  std::vector<std::string> words;
};

// `arguments` without argv[0]. Throws UsageError.
[[nodiscard]] CommandLine parse_command_line(const Program& program,
                                             const std::vector<std::string>& arguments);

// Adds what the program's variables in `environment` ("NAME=value") say and no flag has. Gives a
// line for each variable that has the program's prefix and sets nothing: mistyped, in most cases.
// Throws UsageError.
[[nodiscard]] std::vector<std::string> add_variables(const Program& program,
                                                     const std::vector<std::string>& environment,
                                                     GivenFlags& flags);

}  // namespace drun::cli
