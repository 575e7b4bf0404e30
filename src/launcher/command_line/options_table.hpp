// Every flag of drun, once. Parsing, PET_* variables, --help, --explain, shell completion and the
// man page all read this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace drun::launcher {

enum class Group {
  Job,
  Rendezvous,
  Program,
  Stopping,
  Output,
  Logs,
  Devices,
  Inspect,
  Compatibility
};

enum class Arity {
  Value,  // --flag VALUE or --flag=VALUE
  Switch  // --flag; its variable holds 1 or 0
};

enum class Origin {
  Torchrun,  // torchrun 2.14 has it: its abbreviations keep their meaning
  Launch,    // only torch.distributed.launch has it: known when drun is called as drun-launch
  Drun
};

enum class Readiness {
  Ready,  // works
  Later   // parsed and checked, then refused as not supported by this version; not in --help
};

struct Flag {
  std::string_view name;  // with dashes, without the leading two; underscores work as well
  char letter;            // short form, 0: none
  Arity arity;
  std::string_view metavar;   // "" for switches
  std::string_view fallback;  // the default, for people; "" where there is none to tell
  Origin origin;
  Group group;
  Readiness readiness;
  std::string_view choices;  // for shell completion: words with blanks between, or "FILE", "DIR"
  std::string_view help;     // one sentence without a full stop
};

[[nodiscard]] std::span<const Flag> all_flags();
// By its exact name with dashes; nullptr: no such flag.
[[nodiscard]] const Flag* find_flag(std::string_view name);
// "--help", "--version" and the like ask drun itself and have no variable.
[[nodiscard]] bool has_variable(const Flag& flag);
// "PET_NPROC_PER_NODE"
[[nodiscard]] std::string variable_of(const Flag& flag);
[[nodiscard]] std::string_view title_of(Group group);

}  // namespace drun::launcher
