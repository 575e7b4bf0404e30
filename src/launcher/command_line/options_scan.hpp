// Tells drun's flags from the program, by argparse's rules. Pure; knows names and arity only, not
// what values mean.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/command_line/options_table.hpp"

namespace drun::launcher {

// A user's mistake: one sentence that names the flag, the value and what is allowed.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Source { Default, Variable, Flag };

// One value that was given, and how the user wrote the name ("--nnodes", "PET_NNODES").
struct Setting {
  const Flag* flag = nullptr;
  Source source = Source::Default;
  std::string shown;
  std::string value;  // "1" or "0" for a switch
};

// What was given, by flag name; a flag wins over its variable, the last of several wins.
class Settings {
 public:
  void set(Setting setting);
  [[nodiscard]] const Setting* find(std::string_view name) const;
  // For switches.
  [[nodiscard]] bool on(std::string_view name) const;

 private:
  std::map<std::string_view, Setting> settings_;
};

struct Scanned {
  Settings settings;
  std::vector<std::string> program;  // and its arguments, untouched
};

// `launch`: flags that only torch.distributed.launch has are known. Throws UsageError.
[[nodiscard]] Scanned scan_arguments(const std::vector<std::string>& arguments, bool launch);

// Adds what PET_* and torchrun's other variables of `environment` say and no flag has. Throws
// UsageError.
void add_variables(const std::vector<std::string>& environment, Settings& settings);

// 'text' for an error message: in quotes, control characters made visible, long ones cut.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace drun::launcher
