#include "launcher/local_nodes/replica_groups.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/addresses.hpp"
#include "base/environment_variable.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "base/template_text.hpp"
#include "launcher/backend/free_port.hpp"
#include "launcher/hosts/group_plan.hpp"
#include "launcher/local_nodes/agents_parent.hpp"
#include "launcher/local_nodes/group_ends.hpp"
#include "launcher/options/replica_group.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/telling/own_log.hpp"

namespace drun::launcher {
namespace {

using Unannounced = AgentsParent::Unannounced;

constexpr const char* kLighthouse = "TORCHFT_LIGHTHOUSE";
constexpr int kLighthousePort = 29510;  // torchft's own
constexpr std::chrono::milliseconds kLighthouseGrace{5'000};

void tell_lighthouse(std::vector<std::string>& environment, const std::string& address) {
  erase_variable(environment, kLighthouse);
  environment.push_back(std::string(kLighthouse) + "=" + address);
}

[[noreturn]] void run_child(const std::string& name, const Options& options,
                            const WorkerStreams& streams, pid_t parent, const sigset_t& signals,
                            const std::function<int(const Options&)>& run) {
  live_as_child(options, streams, parent, [&] {
    // What an agent blocks until it handles it. The starter of other hosts' agents expects none.
    if (options.start) ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    configure_log(options, name);
    return run(options);
  });
}

// Where the workers find the lighthouse.
struct Lighthouse {
  int port = kLighthousePort;
  std::string address;  // empty: nobody has said
};

std::string lighthouse_command(const Options& options, int port) {
  return fill_template(options.lighthouse, {{"port", std::to_string(port)}});
}

Lighthouse find_lighthouse(const Options& options) {
  Lighthouse result;
  if (lighthouse_command(options, 0) != options.lighthouse) {
    const auto port = hold_free_port();
    if (!port) throw std::system_error(port.error().code(), "find a port for the lighthouse");
    result.port = port->port;
  }
  // Hosts are told what is handed over, with -x too.
  const auto said = environment_variable(
      options.start ? options.start->environment : options.inherited, kLighthouse);
  if (said && !said->empty()) {
    result.address = *said;
  } else if (!options.lighthouse.empty()) {
    // Other hosts find this one by its name, as torchft itself has it.
    result.address = "http://" + (options.start ? own_host_name() : std::string("127.0.0.1")) +
                     ":" + std::to_string(result.port);
  }
  return result;
}

int run_groups(const Options& options, const std::function<int(const Options&)>& run) {
  const Lighthouse lighthouse = find_lighthouse(options);
  const int groups = options.replica_groups;
  std::vector<std::pair<std::string, Options>> children;
  for (int group = 0; group < groups; ++group)
    children.emplace_back("drun group " + std::to_string(group),
                          group_options(options, group, lighthouse.address));
  if (!options.lighthouse.empty()) {
    children.emplace_back("drun lighthouse", lighthouse_options(options, lighthouse.port));
    log::info("the lighthouse is started here, and the groups are told {}", lighthouse.address);
  }
  ignore_write_signals();
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t before;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  block_signals(signals_of_parent(options));
  OutputRelay relay(STDOUT_FILENO, STDERR_FILENO, {options.output.timestamps, options.quiet});
  std::vector<WorkerStreams> streams;
  for (std::size_t i = 0; i < children.size(); ++i)
    streams.push_back(relay.open(static_cast<int>(i)));
  Unannounced unannounced(children.size());
  const bool adopts_orphans = process::adopt_orphans();
  std::vector<pid_t> started;
  const pid_t parent = ::getpid();
  for (std::size_t i = 0; i < children.size(); ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) run_child(children[i].first, children[i].second, streams[i], parent, before, run);
    if (pid < 0) {
      const int error = errno;
      for (const pid_t child : started)
        ::kill(child, SIGKILL);  // it has not begun
      throw std::system_error(error, std::generic_category(), "fork");
    }
    started.push_back(pid);
  }
  streams.clear();
  relay.start();
  return AgentsParent(options, std::move(started), unannounced, relay, adopts_orphans,
                      std::make_unique<GroupEnds>(groups, !options.lighthouse.empty()))
      .run();
}

}  // namespace

Options group_options(const Options& options, int group, const std::string& lighthouse) {
  Options result = options;
  result.lighthouse.clear();
  result.inferred.clear();
  result.notes.clear();
  if (!lighthouse.empty()) tell_lighthouse(result.inherited, lighthouse);
  if (options.start) {
    result.start = hosts::group_plan(*options.start, options.replica_groups, group);
    if (!lighthouse.empty()) tell_lighthouse(result.start->environment, lighthouse);
    result.replica_group = group;
    // What is asked here about the job of this group is asked by its name.
    result.run_id += group_suffix(group);
    return result;
  }
  belong_to_group(result, group);
  const int agents = std::max(1, options.local_nodes);
  auto& placed = result.placement.agents;
  if (!placed.empty()) {
    placed.erase(placed.begin() + (group + 1) * agents, placed.end());
    placed.erase(placed.begin(), placed.begin() + group * agents);
  }
  // Below a drun, as the agents of --local-nodes are.
  if (options.local_nodes == 0) result.local_node = 0;
  if (group > 0) {
    result.master_port.reset();  // one can have it
    result.stdin_rank.reset();
  }
  return result;
}

Options lighthouse_options(const Options& options, int port) {
  Options result;
  static_cast<SignalChoices&>(result) = static_cast<const SignalChoices&>(options);
  result.leave_on_sigterm = false;
  result.run_id = "lighthouse";
  result.local_node = 0;
  result.inherited = options.inherited;
  result.command = {"/bin/sh", "-c", lighthouse_command(options, port)};
  result.substitute_from = result.command.size();
  result.stdin_rank.reset();
  result.shutdown_timeout = kLighthouseGrace;
  result.output.prefix_template = "lighthouse: ";
  result.output.tee.all = StreamChoice::kOut | StreamChoice::kErr;
  result.output.timestamps = options.output.timestamps;
  result.output.color = options.output.color;
  result.quiet = true;
  result.tells_its_end = false;
  return result;
}

int run_replica_groups(const Options& options, const std::function<int(const Options&)>& run) {
  return with_raised_fd_limit(
      [&](const std::optional<rlimit>&) { return run_groups(options, run); });
}

}  // namespace drun::launcher
