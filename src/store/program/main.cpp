// drun-store: the store as a program of its own.
#include <signal.h>

#include <exception>
#include <string>

#include "base/standard_streams.hpp"
#include "cli/arguments.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/log.hpp"
#include "drun/store/server.hpp"
#include "store/program/store_options.hpp"

namespace drun::store {
namespace {

constexpr int kUsage = 2;
constexpr int kFailed = 125;

sigset_t end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int serve(const StoreSettings& settings) {
  ::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is no reason to end
  raise_descriptor_limit();
  Server server(settings.server);
  // First: a port that is taken is perhaps another store's with the same snapshot.
  const auto bound = server.add_listener(settings.endpoint, Table::Job);
  if (!bound) {
    log::error(bound.error().what());
    return kFailed;
  }
  if (!settings.snapshot.empty()) {
    const Status loaded = server.use_snapshot(settings.snapshot, settings.snapshot_interval);
    if (!loaded) {
      log::error(loaded.error().what());
      return kFailed;
    }
  }
  server.stop_on(end_signals());  // who reads the endpoint may end it at once
  if (const Status written = write_standard_output(to_string(*bound) + "\n"); !written) {
    log::error("cannot " + written.error().what());
    return kFailed;
  }
  server.run();
  return server.last_snapshot() ? 0 : kFailed;
}

int run(int argc, char** argv) {
  log::configure("drun-store", log::Level::Warning);
  try {
    open_standard_streams();
    const auto settings = parse_store_options(argc, argv);
    if (!settings) return 0;
    log::configure("drun-store", settings->level);
    return serve(*settings);
  } catch (const UsageError& error) {
    log::error(error.what());
    return kUsage;
  } catch (const std::exception& error) {
    log::error(error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace drun::store

int main(int argc, char** argv) {
  return drun::store::run(argc, argv);
}
