#include "launcher/leaving/early_end.hpp"

#include <asio/io_context.hpp>

#include "base/addresses.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/event_reporter.hpp"

namespace drun::launcher {

void tell_early_end(const Options& options, int exit_code, const std::string& why) {
  if (!options.events.target && options.events.hooks.empty()) return;
  ignore_write_signals();
  rendezvous::Outcome outcome;
  outcome.end = rendezvous::End::Failure;
  outcome.exit_code = exit_code;
  outcome.text = why;
  asio::io_context io(1);
  EventReporter events(io, options, own_host_name());
  events.begin();
  events.job_ends(outcome, true);
  events.finish(exit_code, [] {});
  io.run();
}

}  // namespace drun::launcher
