#include "cli/answer.hpp"

#include "cli/values.hpp"
#include "drun/version.hpp"

namespace drun::cli {

std::optional<std::string> answer(const Program& program, const GivenFlags& flags) {
  if (flags.on("help-all")) return help_text(program, true);
  if (const Setting* help = flags.find("help"))
    return help->shown == "-h" ? brief_help(program) : help_text(program, false);
  if (flags.on("version")) return version_text(program) + "\n";
  if (flags.on("print-man")) return manual_page(program);
  if (const Setting* shell = flags.find("print-completion")) {
    (void)parse_choice(*shell);
    return completion_script(program, shell->value);
  }
  return std::nullopt;
}

std::string version_text(const Program& program) {
  return std::string(program.name) + " " DRUN_VERSION_STRING;
}

}  // namespace drun::cli
