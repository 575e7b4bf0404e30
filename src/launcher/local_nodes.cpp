#include "launcher/local_nodes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "drun/base/log.hpp"
#include "launcher/agent.hpp"
#include "launcher/agent_settings.hpp"
#include "launcher/output_relay.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/said_once.hpp"
#include "launcher/store_host.hpp"

namespace drun::launcher {
namespace {

// What one agent is told; its node rank makes the order of the nodes plain.
Options node_options(const Options& options, int node, const Endpoint& store) {
  Options result = options;
  result.backend = Backend::C10d;
  result.endpoint = store;
  result.conf.is_host = false;
  result.node_rank = node;
  result.local_nodes = 0;
  result.local_node = node;
  return result;
}

[[noreturn]] void run_node(const Options& options, const WorkerStreams& streams, SaidOnce& said,
                           pid_t parent, const sigset_t& mask) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(128 + SIGKILL);
  ::setpgid(0, 0);  // a Ctrl-C reaches the parent alone, which passes it on once
  ::dup2(streams.standard_output.get(), STDOUT_FILENO);
  ::dup2(streams.standard_error.get(), STDERR_FILENO);
  ::close_range(3, ~0U, 0);  // the parent's store among them
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  int code = 125;
  try {
    code = run_agent(options, &said);
  } catch (const std::exception& error) {
    log::error(error.what());
  }
  std::fflush(nullptr);
  std::_Exit(code);
}

process::ExitStatus to_exit_status(int raw) {
  process::ExitStatus status;
  if (WIFSIGNALED(raw)) {
    status.signal = WTERMSIG(raw);
  } else {
    status.code = WEXITSTATUS(raw);
  }
  return status;
}

void signal_all(const std::vector<pid_t>& agents, int signal) {
  for (const pid_t agent : agents) {
    if (agent > 0) ::kill(agent, signal);
  }
}

// Ctrl-Z reaches this process alone: the agents suspend their workers and themselves first.
void suspend(const std::vector<pid_t>& agents) {
  signal_all(agents, SIGTSTP);
  ::raise(SIGSTOP);
  signal_all(agents, SIGCONT);
}

// Waits for all agents. All give the job's exit code; where one did not (it was killed), the first
// failure counts. Nobody else can take a killed agent's place: when fewer than `fewest` are left,
// the others are stopped.
int wait_for_nodes(std::vector<pid_t>& agents, int fewest, const sigset_t& signals,
                   OutputRelay& relay) {
  int result = 0;
  std::size_t left = agents.size();
  while (left > 0) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal < 0) continue;
    if (signal == SIGTSTP) {
      suspend(agents);
      continue;
    }
    if (signal != SIGCHLD) {
      if (signal == SIGWINCH) relay.resize();
      signal_all(agents, signal);
      continue;
    }
    for (auto& agent : agents) {
      int raw = 0;
      if (agent <= 0 || ::waitpid(agent, &raw, WNOHANG) != agent) continue;
      const auto status = to_exit_status(raw);
      if (status.signal != 0) {
        log::error("an agent (pid " + std::to_string(agent) + ") was " + process::describe(status));
      }
      if (result == 0) result = status.shell_code();
      agent = -1;
      --left;
      if (status.signal != 0 && left > 0 && left < static_cast<std::size_t>(fewest)) {
        log::error("stopping: " + std::to_string(left) + " of at least " + std::to_string(fewest) +
                   " nodes left");
        signal_all(agents, SIGTERM);
      }
    }
  }
  return result;
}

// What this process blocks and waits for: the agents' ends, and what it passes on to them.
sigset_t signals_to_take(const Options& options) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal :
       {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP})
    ::sigaddset(&signals, signal);
  for (const int signal : options.signals_to_handle)
    ::sigaddset(&signals, signal);
  for (const int signal : options.forward_signals)
    ::sigaddset(&signals, signal);
  return signals;
}

}  // namespace

int run_local_nodes(const Options& options) {
  StoreHost store;
  const auto endpoint = store.carry_rendezvous(Endpoint{"127.0.0.1", 0}, false);
  if (!endpoint) {
    log::error(endpoint.error().what());
    return 125;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = signals_to_take(options);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);

  OutputRelay relay(STDOUT_FILENO, STDERR_FILENO);
  std::vector<WorkerStreams> streams;
  for (int node = 0; node < options.local_nodes; ++node)
    streams.push_back(relay.open(node));
  SaidOnce said;
  std::vector<pid_t> agents;
  const pid_t parent = ::getpid();
  for (int node = 0; node < options.local_nodes; ++node) {
    const pid_t pid = ::fork();
    if (pid == 0)
      run_node(node_options(options, node, Endpoint{"127.0.0.1", endpoint->port}),
               streams[static_cast<std::size_t>(node)], said, parent, before);
    if (pid < 0) {
      const int error = errno;
      signal_all(agents, SIGTERM);
      streams.clear();
      relay.start();
      wait_for_nodes(agents, options.min_nodes, signals, relay);
      throw std::system_error(error, std::generic_category(), "fork");
    }
    agents.push_back(pid);
  }
  streams.clear();
  relay.start();
  store.serve();
  int code = 0;
  {
    // Undone on every way out: what is thrown from here is logged when the relay is gone.
    const std::unique_ptr<OutputRelay, void (*)(OutputRelay*)> redirected(
        &relay, [](OutputRelay*) { log::redirect({}); });
    log::redirect([&relay](std::string line) { relay.message(std::move(line)); });
    code = wait_for_nodes(agents, options.min_nodes, signals, relay);
  }
  return relay.finish() || code != 0 ? code : kDrunFailed;
}

}  // namespace drun::launcher
