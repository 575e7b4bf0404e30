// drun-store: the store as a program of its own.
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "base/exit_codes.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "base/standard_streams.hpp"
#include "cli/usage_error.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/server.hpp"
#include "secure/given_tls.hpp"
#include "secure/token_source.hpp"
#include "store/program/store_options.hpp"

namespace drun::store {
namespace {

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// The exit code: not 0 if the text cannot be written.
int print(const std::string& text) {
  const Status written = write_standard_output(text);
  if (written) return 0;
  log::error("cannot {}", written.error().what());
  return kDrunFailed;
}

int serve(const StoreOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is no reason to end
  raise_fd_limit();            // each peer takes a descriptor
  Server server(options.server);
  // First: a port that is taken is perhaps another store's with the same snapshot.
  const auto bound = server.add_listener(options.endpoint, Table::Job);
  if (!bound) {
    log::error("{}", bound.error().what());
    return kDrunFailed;
  }
  if (!options.snapshot.empty()) {
    const Status loaded = server.use_snapshot(options.snapshot, options.snapshot_interval);
    if (!loaded) {
      log::error("{}", loaded.error().what());
      return kDrunFailed;
    }
  }
  server.stop_on(end_signals());  // who reads the endpoint may end it at once
  if (const int failed = print(to_string(*bound) + "\n"); failed != 0) return failed;
  server.run();
  return server.last_snapshot() ? 0 : kDrunFailed;
}

// An error that the user can mend is a UsageError.
Status use_token(StoreOptions& options, std::optional<Result<secure::Token>> variable) {
  const auto given =
      secure::given_tls(std::move(variable), options.token_file, options.certificate);
  if (!given && secure::is_users(given.error())) throw cli::UsageError(given.error().what());
  if (!given) return given.error();
  if (given->token && !given->token->is_long()) log::warning("{}", secure::kShortToken);
  options.server.tls = given->tls;
  return Done{};
}

int run(int argc, char** argv) {
  log::configure("drun-store", log::Level::Warning);
  try {
    open_standard_streams();
    auto token = secure::take_token(::environ);
    auto parsed = parse_store_options({argv + 1, argv + argc});
    if (!parsed.options) return print(parsed.text);
    log::configure("drun-store", parsed.options->level);
    if (const Status taken = use_token(*parsed.options, std::move(token)); !taken) {
      log::error("{}", taken.error().what());
      return kDrunFailed;
    }
    return serve(*parsed.options);
  } catch (const cli::UsageError& error) {
    log::error("{}", error.what());
    return kUsageError;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return kDrunFailed;
  }
}

}  // namespace
}  // namespace drun::store

int main(int argc, char** argv) {
  return drun::store::run(argc, argv);
}
