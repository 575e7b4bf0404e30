#include "launcher/local_nodes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <vector>

#include "drun/base/log.hpp"
#include "launcher/agent.hpp"
#include "launcher/process/exit_status.hpp"
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

[[noreturn]] void run_node(const Options& options, pid_t parent, const sigset_t& mask) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(128 + SIGKILL);
  ::setpgid(0, 0);           // a Ctrl-C reaches the parent alone, which passes it on once
  ::close_range(3, ~0U, 0);  // the parent's store among them
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  int code = 125;
  try {
    code = run_agent(options);
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

// Waits for all agents. All give the job's exit code; where one did not (it was killed), the first
// failure counts.
int wait_for_nodes(std::vector<pid_t>& agents, const sigset_t& signals) {
  int result = 0;
  std::size_t left = agents.size();
  while (left > 0) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      for (const pid_t agent : agents) {
        if (agent > 0) ::kill(agent, signal);
      }
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
    }
  }
  return result;
}

}  // namespace

int run_local_nodes(const Options& options) {
  StoreHost store;
  const auto endpoint = store.carry_rendezvous(Endpoint{"127.0.0.1", 0}, false);
  if (!endpoint) {
    log::error(endpoint.error().what());
    return 125;
  }
  sigset_t signals;
  sigset_t before;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, &before);

  std::vector<pid_t> agents;
  const pid_t parent = ::getpid();
  for (int node = 0; node < options.local_nodes; ++node) {
    const pid_t pid = ::fork();
    if (pid == 0)
      run_node(node_options(options, node, Endpoint{"127.0.0.1", endpoint->port}), parent, before);
    if (pid < 0) {
      const int error = errno;
      for (const pid_t agent : agents)
        ::kill(agent, SIGTERM);
      wait_for_nodes(agents, signals);
      throw std::system_error(error, std::generic_category(), "fork");
    }
    agents.push_back(pid);
  }
  store.serve();
  return wait_for_nodes(agents, signals);
}

}  // namespace drun::launcher
