#include "launcher/local_nodes/local_nodes.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_codes.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/local_nodes/agents_parent.hpp"
#include "launcher/local_nodes/node_options.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/shared_log_dedup.hpp"
#include "launcher/telling/shared_stop_reason.hpp"

namespace drun::launcher {
namespace {

using Unannounced = AgentsParent::Unannounced;

// The signals stay blocked until the agent handles them.
[[noreturn]] void run_node(const Options& options, const WorkerStreams& streams,
                           SharedLogDedup& neighbours, std::atomic<bool>& unannounced,
                           SharedStopReason& why_stopped, pid_t parent) {
  live_as_child(options, streams, parent, [&] {
    try {
      return run_agent(options, &neighbours, &unannounced, &why_stopped);
    } catch (...) {
      unannounced = true;
      throw;
    }
  });
}

struct StartedAgents {
  std::vector<pid_t> processes;
  int error = 0;  // errno of the fork that failed, after these
};

// Each gets its streams; nobody else holds them afterwards.
StartedAgents start_agents(const Options& options, const Endpoint& store, Unannounced& unannounced,
                           SharedStopReason& why_stopped, OutputRelay& relay) {
  std::vector<WorkerStreams> streams;
  for (int node = 0; node < options.local_nodes; ++node)
    streams.push_back(relay.open(node));
  SharedLogDedup neighbours;
  StartedAgents started;
  const pid_t parent = ::getpid();
  for (int node = 0; node < options.local_nodes; ++node) {
    const auto index = static_cast<std::size_t>(node);
    const pid_t pid = ::fork();
    if (pid == 0)
      run_node(node_options(options, node, store), streams[index], neighbours, unannounced[index],
               why_stopped, parent);
    if (pid < 0) {
      started.error = errno;
      break;
    }
    started.processes.push_back(pid);
  }
  return started;
}

int run_nodes(const Options& options) {
  HostedStore store(parents_server_options(options));
  const auto endpoint = store.bind_rendezvous(Endpoint{"127.0.0.1", 0}, false);
  if (!endpoint) {
    log::error("{}", endpoint.error().what());
    return kDrunFailed;
  }
  ignore_write_signals();
  std::signal(SIGCHLD, SIG_DFL);
  block_signals(signals_of_parent(options));
  OutputRelay relay(STDOUT_FILENO, STDERR_FILENO, {options.output.timestamps, options.quiet});
  Unannounced unannounced(static_cast<std::size_t>(options.local_nodes));
  SharedStopReason why_stopped;
  const bool adopts_orphans = process::adopt_orphans();
  const StartedAgents started =
      start_agents(options, Endpoint{"127.0.0.1", endpoint->port}, unannounced, why_stopped, relay);
  relay.start();
  if (started.error == 0) {
    store.start_serving();
  } else {
    for (const pid_t agent : started.processes)
      ::kill(agent, SIGTERM);
  }
  const int code = AgentsParent(options, started.processes, unannounced, relay, adopts_orphans,
                                nullptr, &why_stopped)
                       .run();
  if (started.error != 0) throw std::system_error(started.error, std::generic_category(), "fork");
  return code;
}

}  // namespace

int run_local_nodes(const Options& options) {
  return with_raised_fd_limit(
      [&options](const std::optional<rlimit>&) { return run_nodes(options); });
}

}  // namespace drun::launcher
