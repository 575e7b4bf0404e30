#include "launcher/starter/start_hosts.hpp"

#include <unistd.h>

#include <optional>

#include "base/fd_limit.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/starter/starter.hpp"

namespace drun::launcher {

int run_hosts(const Options& options) {
  return with_raised_fd_limit([&options](const std::optional<rlimit>&) {
    ignore_write_signals();
    OutputRelay relay(STDOUT_FILENO, STDERR_FILENO, {options.output.timestamps, options.quiet});
    return Starter(options, relay).run();
  });
}

}  // namespace drun::launcher
