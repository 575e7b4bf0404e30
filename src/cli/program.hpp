// A program's command line as one table: its flags, its commands and the words around them.
// Parsing, variables, help, the manual page and the completions all read it. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drun::cli {

enum class Origin {
  Own,
  Torchrun,  // torchrun 2.14 has it: its abbreviations keep their meaning, whatever drun adds
  Launch     // only torch.distributed.launch has it; no variable sets it
};

// No argument of a program has it in it.
inline constexpr char kBetweenValues = '\0';

struct Flag {
  std::string_view name;      // with dashes, without the leading two; underscores work as well
  char letter;                // short form, 0: none
  std::string_view metavar;   // what its value is called; "": a switch, which takes none
  std::string_view fallback;  // the default, for people; "": none to tell
  Origin origin;
  std::string_view group;  // its heading; flags of one group stand together
  // For shell completion: words with blanks between, "," before them: a list of them with commas
  // between; or "FILE", "DIR".
  std::string_view choices;
  std::string_view help;      // one sentence without a full stop
  bool question = false;      // asks the program about itself, as --help does: no variable sets it
  bool repeats = false;       // may be given several times: the values with kBetweenValues between
  bool may_be_empty = false;  // an empty variable is its value; of others it counts as not set

  [[nodiscard]] bool takes_value() const { return !metavar.empty(); }
  [[nodiscard]] bool has_variable() const { return !question && origin != Origin::Launch; }
};

// The questions that every program answers; see answer() in answer.hpp.
constexpr Flag help_flag(std::string_view group) {
  return {"help", 'h', "", "", Origin::Torchrun, group, "", "this help", true};
}
constexpr Flag version_flag(std::string_view group) {
  return {"version", 0, "", "", Origin::Own, group, "", "print the version", true};
}
constexpr Flag completion_flag(std::string_view group) {
  return {"print-completion",
          0,
          "SHELL",
          "",
          Origin::Torchrun,
          group,
          "bash zsh fish",
          "print a completion script for bash, zsh or fish",
          true};
}
constexpr Flag manual_flag(std::string_view group) {
  return {"print-man", 0, "", "", Origin::Own, group, "", "print the manual page", true};
}

struct Command {
  std::string_view name;
  std::string_view words;  // what follows the name: "KEY [N]"
  std::string_view help;
  std::span<const Flag> flags;  // known behind the command only
  bool files = false;           // what follows it are files: shells complete them

  [[nodiscard]] std::string usage() const {  // "add KEY [N]"
    return std::string(name) + (words.empty() ? "" : " ") + std::string(words);
  }
};

// A variable that sets a flag under a name of its own.
struct Variable {
  std::string_view flag;
  std::string_view name;
  std::string_view only;   // of no effect unless it holds this; "": whatever it holds
  std::string_view value;  // what the flag becomes; "": what the variable holds
};

// The parts of the manual page that the table does not have, as troff.
struct ManualText {
  std::string synopsis;
  std::string description;
  std::string_view group;  // `below_group` stands below the flags of this one
  std::string below_group;
  std::string sections;  // after the flags
};

struct Program {
  std::string_view name;
  std::string_view purpose;  // what it is, in one line
  std::string_view usage;    // the lines after "usage: "
  std::string_view about;    // lines for --help, above the flags
  std::string_view notes;    // and below them
  std::span<const Flag> flags;
  std::span<const Command> commands{};
  // The first word is a program: what follows it is left alone, and flags may be abbreviated, as
  // argparse has it for torchrun. Else flags may stand anywhere.
  bool runs_program = false;
  bool launch = false;  // called as torch.distributed.launch is: flags that only that one has work
  std::string_view launch_name{};      // by this name
  std::string_view minor_group{};      // in --help-all only
  std::string_view variable_prefix{};  // "PET_": --max-restarts is also PET_MAX_RESTARTS; "": none
  std::span<const Variable> variables{};
  // What users of other launchers type, and what it is called here ("--nnodes"), or the way here in
  // words.
  std::span<const std::pair<std::string_view, std::string_view>> habits{};
  // Names that flags had before, without dashes: they work, and nothing shows them.
  std::span<const std::pair<std::string_view, std::string_view>> aliases{};
  // Whole words of other launchers ("-n") that work, each with the flag that it means. Unlike a
  // letter such a word stands alone: "-n4" and "-np" are none.
  std::span<const std::pair<std::string_view, std::string_view>> words{};
  std::span<const std::string_view> brief{};  // the flags that -h shows; empty: all
  ManualText (*manual)() = nullptr;           // nullptr: the manual page says what --help says

  [[nodiscard]] bool knows(const Flag& flag) const {
    return flag.origin != Origin::Launch || launch;
  }
  // By its exact name with dashes, or an alias; nullptr: no such flag is known. `command` may be
  // nullptr.
  [[nodiscard]] const Flag* find(std::string_view name, const Command* command = nullptr) const;
  [[nodiscard]] bool is_alias(std::string_view name) const;
  [[nodiscard]] const Command* find_command(std::string_view name) const;
  // In the order of their first flag.
  [[nodiscard]] std::vector<std::string_view> groups() const;
};

// "-n": the flag's letter, or the whole word that means it; "" if it has neither.
[[nodiscard]] std::string short_form(const Program& program, const Flag& flag);
// The flags of the program and of `command`, which may be nullptr.
[[nodiscard]] std::vector<const Flag*> known_flags(const Program& program, const Command* command);
// "nproc-per-node" -> "PET_NPROC_PER_NODE"
[[nodiscard]] std::string variable_named(const Program& program, std::string_view flag);
// "PET_NPROC_PER_NODE"; "" if no variable sets it.
[[nodiscard]] std::string variable_of(const Program& program, const Flag& flag);

}  // namespace drun::cli
