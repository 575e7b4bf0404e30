// drun: parse, run, give the exit code.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "drun/base/log.hpp"
#include "launcher/agent.hpp"
#include "launcher/dry_run.hpp"
#include "launcher/local_nodes.hpp"
#include "launcher/options.hpp"

namespace {

// A standard stream that was closed must not become the number of some descriptor of drun's own.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0)
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  using namespace drun;
  const auto parsed = launcher::parse_options({argv, argv + argc}, launcher::own_environment());
  if (!parsed.options) {
    std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
    return parsed.exit_code;
  }
  const auto& options = *parsed.options;
  log::configure("drun", options.verbose ? log::Level::Debug
                         : options.quiet ? log::Level::Error
                                         : log::Level::Info);
  for (const auto& note : options.notes)
    log::warning(note);
  try {
    if (options.dry_run) {
      std::fputs(launcher::dry_run(options).c_str(), stdout);
      return 0;
    }
    return options.local_nodes > 0 ? launcher::run_local_nodes(options)
                                   : launcher::run_agent(options);
  } catch (const std::exception& error) {
    log::error(error.what());
    return 125;
  }
}
