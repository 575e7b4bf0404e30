#include "launcher/local_nodes/local_nodes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exit_codes.hpp"
#include "base/open_files.hpp"
#include "drun/base/log.hpp"
#include "launcher/agent/agent.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/agent_signals.hpp"
#include "launcher/agent/shared_array.hpp"
#include "launcher/agent/shared_log_dedup.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/process/suspension.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The same signal again within this time asks for nothing new: the agents need it to act.
constexpr milliseconds kRepetition{500};
// The agents themselves know what a second and a third request to stop mean.
constexpr int kLastRequest = 4;
constexpr milliseconds kSuspendLimit{1'000};

// What one agent is told; its node rank makes the order of the nodes plain. Nodes beyond the
// largest number have none and are spares; only one can have the workers' store at a given port.
Options node_options(const Options& options, int node, const Endpoint& store) {
  Options result = options;
  result.endpoint = store;
  result.conf.is_host = false;
  if (node < options.max_nodes) result.node_rank = node;
  if (node > 0) result.master_port.reset();
  result.local_nodes = 0;
  result.local_node = node;
  return result;
}

// One flag per agent: it left, and the others cannot know.
using Unnoticed = SharedArray<std::atomic<bool>>;

// The signals stay blocked until the agent handles them.
[[noreturn]] void run_node(const Options& options, const WorkerStreams& streams,
                           SharedLogDedup& said, std::atomic<bool>& unnoticed, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(128 + SIGKILL);
  ::setpgid(0, 0);  // a Ctrl-C reaches the parent alone, which passes it on once
  ::dup2(streams.standard_output.get(), STDOUT_FILENO);
  ::dup2(streams.standard_error.get(), STDERR_FILENO);
  ::close_range(3, ~0U, 0);  // the parent's store among them
  int code = kDrunFailed;
  try {
    code = run_agent(options, &said, &unnoticed);
  } catch (const std::exception& error) {
    unnoticed = true;
    log::error(error.what());
  }
  std::fflush(nullptr);
  std::_Exit(code);
}

// The one of `signals` that arrives within `limit`; 0: none.
int next_signal(const sigset_t& signals, std::chrono::nanoseconds limit) {
  const timespec time{limit.count() / 1'000'000'000, limit.count() % 1'000'000'000};
  return std::max(0, ::sigtimedwait(&signals, nullptr, &time));
}

// The agents' parent, while they run.
class Agents {
 public:
  // The arguments must outlive this.
  Agents(const Options& options, const sigset_t& signals, Unnoticed& unnoticed, OutputRelay& relay)
      : options_(options), signals_(signals), unnoticed_(unnoticed), relay_(relay) {}

  void add(pid_t agent) {
    agents_.push_back(agent);
    ++left_;
  }

  void signal_all(int signal) const {
    for (const pid_t agent : agents_) {
      if (agent > 0) ::kill(agent, signal);
    }
  }

  // Waits for all of them, then for who reads their output, and gives the job's exit code.
  int wait() {
    while (left_ > 0) {
      const int signal = ::sigwaitinfo(&signals_, nullptr);
      if (signal < 0) continue;
      if (signal == SIGTSTP || signal == SIGTTIN) {
        suspend_all(signal);
      } else if (signal != SIGCHLD) {
        pass_on(signal);
      }
      reap();
    }
    return deliver(exit_code());
  }

 private:
  // Each agent gives the job's outcome, unless it was lost.
  [[nodiscard]] int exit_code() const {
    if (killed_by_ != 0) return outcome_.value_or(0) != 0 ? *outcome_ : 128 + killed_by_;
    return too_few_ ? lost_ : outcome_.value_or(lost_);
  }

  void pass_on(int signal) {
    if (signal == SIGWINCH) relay_.resize();
    const bool stop = asks_to_stop(signal);
    if (stop && is_new_request(signal) && requests_ >= kLastRequest) {
      log::warning("received " + process::signal_name(signal) + " again: killing the agents");
      killed_by_ = signal;
      return signal_all(SIGKILL);  // their guardians see to the workers
    }
    signal_all(signal);
    if (stop) signal_all(SIGCONT);  // one that was stopped could not act on it
  }

  bool is_new_request(int signal) {
    const auto now = Clock::now();
    if (signal == last_request_ && now - last_request_at_ < kRepetition) return false;
    last_request_ = signal;
    last_request_at_ = now;
    ++requests_;
    return true;
  }

  [[nodiscard]] bool asks_to_stop(int signal) const {
    if (signal == 0 || signal == SIGCHLD || signal == SIGTTIN) return false;
    return meaning_of(signal, options_) == SignalMeaning::Stop && !ignored_by_nohup(signal);
  }

  // As an agent does.
  int deliver(int code) {
    relay_.drain(FlushPolicy::kInterval);
    FlushPolicy delivery(code, requests_ > 0, Clock::now());
    int stopped_by = 0;
    for (;;) {
      const FlushProgress delivered = relay_.flush_progress();
      const auto step = delivery.look(delivered, Clock::now());
      if (step == FlushPolicy::Step::Done) return code;
      if (step == FlushPolicy::Step::GiveUp || stopped_by != 0) {
        log::error(lost_at_reader(delivered, stopped_by != 0
                                                 ? "received " + process::signal_name(stopped_by)
                                                 : delivery.reason()));
        return code != 0 ? code : 128 + last_request_;  // now, or while the agents ended
      }
      if (step == FlushPolicy::Step::Tell) log::warning(waiting_for_reader(delivered));
      const int signal = next_signal(signals_, FlushPolicy::kInterval);
      if (signal == SIGWINCH) relay_.resize();
      if (signal == SIGTSTP && process::can_be_suspended()) process::suspend();
      if (asks_to_stop(signal) && is_new_request(signal)) stopped_by = signal;
    }
  }

  // Ctrl-Z reaches this process alone: the agents suspend their workers and themselves first.
  // SIGTTIN: an agent says that a worker reads the terminal while this job is in the background.
  void suspend_all(int signal) const {
    if (!process::can_be_suspended()) return;
    signal_all(SIGTSTP);
    wait_until_suspended();
    process::suspend(signal);
    signal_all(SIGCONT);
  }

  // One that stopped later than it is told to go on would stay so. One that hangs is left behind.
  void wait_until_suspended() const {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    const auto deadline = Clock::now() + kSuspendLimit;
    for (const pid_t agent : agents_) {
      while (agent > 0) {
        siginfo_t info{};
        const int found = ::waitid(P_PID, static_cast<id_t>(agent), &info,
                                   WSTOPPED | WEXITED | WNOHANG | WNOWAIT);
        if (found != 0 || info.si_pid != 0) break;
        const auto left = deadline - Clock::now();
        if (left <= Clock::duration::zero()) return;
        (void)next_signal(child, left);
      }
    }
  }

  void reap() {
    for (std::size_t node = 0; node < agents_.size(); ++node) {
      int raw = 0;
      const pid_t agent = agents_[node];
      if (agent <= 0 || ::waitpid(agent, &raw, WNOHANG) != agent) continue;
      agents_[node] = -1;
      --left_;
      const auto status = process::from_wait_status(raw);
      if (status.signal != 0 && killed_by_ == 0)
        log::error("an agent (pid " + std::to_string(agent) + ") was " + process::describe(status));
      if (status.signal != 0 || (status.code != 0 && unnoticed_[node])) {
        on_lost(status.shell_code());
      } else if (outcome_.value_or(0) == 0) {
        outcome_ = status.code;
      }
    }
  }

  // Nobody else can take its place.
  void on_lost(int code) {
    if (lost_ == 0) lost_ = code;
    if (requests_ > 0 || too_few_ || left_ == 0 || left_ >= options_.min_nodes) return;
    too_few_ = true;
    log::error("stopping: " + std::to_string(left_) + " of at least " +
               std::to_string(options_.min_nodes) + " nodes left");
    signal_all(SIGTERM);
    signal_all(SIGCONT);
  }

  const Options& options_;
  const sigset_t& signals_;
  Unnoticed& unnoticed_;
  OutputRelay& relay_;
  std::vector<pid_t> agents_;  // -1: it has ended
  int left_ = 0;
  std::optional<int> outcome_;  // of the job, as the agents say that took part to the end
  int lost_ = 0;                // the first code of those that did not
  bool too_few_ = false;        // the others were stopped for it
  int requests_ = 0;            // to stop
  int last_request_ = 0;
  Clock::time_point last_request_at_;
  int killed_by_ = 0;  // the request that was one too many
};

// What this process blocks and waits for: the agents' ends, and what it passes on to them. A Ctrl-Z
// that is ignored from the start stays so.
sigset_t signals_to_take(const Options& options) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH})
    ::sigaddset(&signals, signal);
  for (const int signal : {SIGTSTP, SIGTTIN})
    if (!ignored_from_start(signal)) ::sigaddset(&signals, signal);
  for (const int signal : options.signals_to_handle)
    ::sigaddset(&signals, signal);
  for (const int signal : options.forward_signals)
    ::sigaddset(&signals, signal);
  return signals;
}

int run_nodes(const Options& options) {
  HostedStore store;
  const auto endpoint = store.bind_rendezvous(Endpoint{"127.0.0.1", 0}, false);
  if (!endpoint) {
    log::error(endpoint.error().what());
    return kDrunFailed;
  }
  ignore_write_signals();
  std::signal(SIGCHLD, SIG_DFL);
  const sigset_t signals = signals_to_take(options);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);

  OutputRelay relay(STDOUT_FILENO, STDERR_FILENO);
  std::vector<WorkerStreams> streams;
  for (int node = 0; node < options.local_nodes; ++node)
    streams.push_back(relay.open(node));
  SharedLogDedup said;
  Unnoticed unnoticed(static_cast<std::size_t>(options.local_nodes));
  Agents agents(options, signals, unnoticed, relay);
  const pid_t parent = ::getpid();
  for (int node = 0; node < options.local_nodes; ++node) {
    const auto index = static_cast<std::size_t>(node);
    const pid_t pid = ::fork();
    if (pid == 0)
      run_node(node_options(options, node, Endpoint{"127.0.0.1", endpoint->port}), streams[index],
               said, unnoticed[index], parent);
    if (pid < 0) {
      const int error = errno;
      agents.signal_all(SIGTERM);
      streams.clear();
      relay.start();
      agents.wait();
      throw std::system_error(error, std::generic_category(), "fork");
    }
    agents.add(pid);
  }
  streams.clear();
  relay.start();
  store.start_serving();
  int code = 0;
  {
    // Undone on every way out: what is thrown from here is logged when the relay is gone.
    const std::unique_ptr<OutputRelay, void (*)(OutputRelay*)> redirected(
        &relay, [](OutputRelay*) { log::redirect({}); });
    log::redirect([&relay](std::string line) { relay.message(std::move(line)); });
    code = agents.wait();
  }
  return relay.finish() || code != 0 ? code : kDrunFailed;
}

}  // namespace

int run_local_nodes(const Options& options) {
  return with_raised_open_files(
      [&options](const std::optional<rlimit>&) { return run_nodes(options); });
}

}  // namespace drun::launcher
