#include "launcher/starter/start_hosts.hpp"

#include <unistd.h>

#include <optional>

#include "base/fd_limit.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/starter/starter.hpp"

namespace drun::launcher {

int run_hosts(const Options& options) {
  return with_raised_fd_limit([&options](const std::optional<rlimit>&) {
    ignore_write_signals();
    OutputRelay relay(STDOUT_FILENO, STDERR_FILENO, {options.output.timestamps, options.quiet});
    Starter starter(options, relay);
    const int code = starter.run();
    // No agent has written it, and an earlier job's must not stand for this one's.
    if (!starter.nothing_started().empty())
      report_early(options.report_file, code, starter.nothing_started());
    return code;
  });
}

}  // namespace drun::launcher
