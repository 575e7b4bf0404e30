#include "launcher/telling/own_log.hpp"

#include <unistd.h>

#include "base/environment_variable.hpp"
#include "base/ink.hpp"
#include "base/log.hpp"

namespace drun::launcher {

void configure_log(const Options& options, std::string_view name) {
  log::configure(name,
                 options.verbose ? log::Level::Debug
                 : options.quiet ? log::Level::Error
                                 : log::Level::Info,
                 options.output.timestamps);
  const auto variable = [&](const char* of) { return environment_variable(options.inherited, of); };
  log::use_color(wants_color(options.output.color, ::isatty(STDERR_FILENO) == 1, variable("TERM"),
                             variable("NO_COLOR")));
}

}  // namespace drun::launcher
