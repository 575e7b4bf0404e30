#include "launcher/local_nodes/agents_parent.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/close_descriptors.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/signal_block.hpp"
#include "launcher/local_nodes/node_ends.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/suspension.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSuspendLimit{1'000};
// As long as an agent waits for its helpers.
constexpr milliseconds kSweepLimit = process::kLongestKilling + milliseconds(1'000);

// Waits for the end or the stop of a child, at most so long. SIGCHLD is blocked.
void await_child(Clock::duration limit) {
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  const auto left = std::chrono::nanoseconds(limit).count();
  const timespec time{left / 1'000'000'000, left % 1'000'000'000};
  (void)::sigtimedwait(&child, nullptr, &time);
}

// The agents of one job.
class NodesOfAJob final : public ChildEnds {
 public:
  NodesOfAJob(int nodes, int min_nodes) : ends_(nodes, min_nodes), min_nodes_(min_nodes) {}

  Consequence on_end(std::size_t /*child*/, const process::ExitStatus& status,
                     bool unannounced) override {
    if (ends_.on_end(status, unannounced) == NodeEnds::Step::None) return {};
    const std::string left =
        std::to_string(ends_.left()) + " of at least " + std::to_string(min_nodes_) + " nodes left";
    return {"stopping: " + left, true, -1, left};
  }
  void on_stop() override { ends_.on_stop(); }
  void on_killed(int signal) override { ends_.on_killed(signal); }
  [[nodiscard]] std::string name(std::size_t /*child*/) const override { return "an agent"; }
  [[nodiscard]] int left() const override { return ends_.left(); }
  [[nodiscard]] bool killed() const override { return ends_.killed(); }
  [[nodiscard]] int exit_code() const override { return ends_.exit_code(); }

 private:
  NodeEnds ends_;
  const int min_nodes_;
};

bool has_stopped_or_ended(pid_t agent) {
  siginfo_t info{};
  const int found =
      ::waitid(P_PID, static_cast<id_t>(agent), &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT);
  return found != 0 || info.si_pid != 0;
}

}  // namespace

std::vector<int> signals_of_parent(const Options& options) {
  std::vector<int> signals = signals_of_agent(options);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    if (!ignored_by_nohup(signal)) signals.push_back(signal);
  if (!ignored_from_start(SIGTTIN)) signals.push_back(SIGTTIN);
  return signals;
}

void block_signals(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : signals)
    ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

void live_as_child(const Options& options, const WorkerStreams& streams, pid_t parent,
                   const std::function<int()>& run) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(exit_code_of_signal(SIGKILL));
  ::setpgid(0, 0);  // a Ctrl-C reaches the parent alone, which passes it on once
  ::dup2(streams.standard_output.get(), STDOUT_FILENO);
  ::dup2(streams.standard_error.get(), STDERR_FILENO);
  // A store of the parent's is among them; what --events names is the user's.
  const int given = options.events.target ? options.events.target->descriptor : -1;
  close_descriptors(3, std::span(&given, given < 3 ? 0U : 1U));
  int code = kDrunFailed;
  try {
    code = run();
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
  std::fflush(nullptr);
  std::_Exit(code);
}

AgentsParent::AgentsParent(const Options& options, std::vector<pid_t> agents,
                           Unannounced& unannounced, OutputRelay& relay, bool adopts_orphans,
                           std::unique_ptr<ChildEnds> ends, SharedStopReason* why_stopped)
    : options_(options),
      agents_(std::move(agents)),
      unannounced_(unannounced),
      why_stopped_(why_stopped),
      relay_(relay),
      adopts_orphans_(adopts_orphans),
      signals_(io_, signals_of_parent(options)),
      sweep_limit_(io_),
      ends_(ends != nullptr ? std::move(ends)
                            : std::make_unique<NodesOfAJob>(static_cast<int>(agents_.size()),
                                                            options.min_nodes)),
      shutdown_(
          io_,
          {[&relay](milliseconds limit) { relay.drain(limit); },
           [&relay] { return relay.flush_progress(); }, [] {}},
          {[this] { sweep(); }, [this] { sweep_limit_.cancel(); }, [this] { signals_.cancel(); }}) {
}

int AgentsParent::run() {
  relay_.log_while([this] {
    signals_.start([this](int signal) { on_signal(signal); });
    collect();
    io_.run();
  });
  if (!relay_.finish()) shutdown_.on_output_lost();
  return shutdown_.exit_code();
}

// ---- signals ----

void AgentsParent::on_signal(int signal) {
  if (signal == SIGCHLD) return collect();
  if (signal == SIGTTIN) return suspend_all(signal);
  switch (meaning_of(signal, options_, shutdown_.asked_to_stop())) {
    case SignalMeaning::Suspend:
      return suspend_all(signal);
    case SignalMeaning::Resize:
      relay_.resize();
      return signal_all(signal);
    case SignalMeaning::Forward:
      return signal_all(signal);
    case SignalMeaning::Stacks:
      return show_stacks(signal);
    case SignalMeaning::Stop:
      return on_stop(signal);
  }
}

// What a request means each agent decides itself, by the same rules; so it gets also what only
// repeats one.
void AgentsParent::on_stop(int signal) {
  const auto level = shutdown_.on_stop_signal(signal);
  ends_->on_stop();
  if (level == StopLevel::Force && ends_->left() > 0) {
    kill_agents(signal);
  } else {
    signal_all(signal);
    signal_all(SIGCONT);  // one that was stopped could not act on it
  }
}

void AgentsParent::kill_agents(int signal) {
  log::warning("received {} again: killing the agents", process::signal_name(signal));
  ends_->on_killed(signal);
  signal_all(SIGKILL);  // their guardians see to the workers
}

void AgentsParent::signal_all(int signal) const {
  for (const pid_t agent : agents_)
    if (agent > 0) ::kill(agent, signal);
}

// One agent of a job asks the others.
void AgentsParent::show_stacks(int signal) const {
  if (options_.local_nodes == 0) return signal_all(signal);
  for (const pid_t agent : agents_) {
    if (agent <= 0) continue;
    ::kill(agent, signal);
    return;
  }
}

void AgentsParent::stop(pid_t agent) const {
  if (agent <= 0) return;
  ::kill(agent, SIGTERM);
  ::kill(agent, SIGCONT);
}

// Ctrl-Z reaches this process alone: the agents suspend their workers and themselves first.
// SIGTTIN: an agent says that a worker reads the terminal while this job is in the background.
void AgentsParent::suspend_all(int signal) {
  if (options_.start) return log::warning("a job on other hosts cannot be suspended");
  if (!process::can_be_suspended()) return;
  signal_all(SIGTSTP);
  wait_until_suspended();
  process::suspend(signal);
  signal_all(SIGCONT);
  collect();  // whose end was heard of meanwhile
}

// An agent that stops only after it was told to go on would stay stopped. One that hangs is not
// waited for any longer.
void AgentsParent::wait_until_suspended() const {
  const SignalBlock block;
  const auto deadline = Clock::now() + kSuspendLimit;
  for (const pid_t agent : agents_) {
    while (agent > 0 && !has_stopped_or_ended(agent)) {
      const auto left = deadline - Clock::now();
      if (left <= Clock::duration::zero()) return;
      await_child(left);
    }
  }
}

// ---- ends ----

void AgentsParent::collect() {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
    const auto agent = std::find(agents_.begin(), agents_.end(), ended);
    if (agent != agents_.end())
      on_end(static_cast<std::size_t>(agent - agents_.begin()), process::from_wait_status(status));
  }
  if (ends_->left() == 0) shutdown_.on_outcome(ends_->exit_code());
  if (ends_->left() == 0 && ended < 0) shutdown_.on_swept();
}

void AgentsParent::on_end(std::size_t node, const process::ExitStatus& status) {
  const pid_t agent = std::exchange(agents_[node], -1);
  if (status.signal != 0) agent_killed_ = true;
  if (status.signal != 0 && !ends_->killed())
    log::error("{} (pid {}) was {}", ends_->name(node), agent, process::describe(status));
  const auto then = ends_->on_end(node, status, unannounced_[node]);
  if (!then.line.empty()) log::error("{}", then.line);
  if (then.stop_all && why_stopped_ != nullptr)
    why_stopped_->set(ends_->name(node) + " (pid " + std::to_string(agent) + ") " +
                          (status.signal != 0 ? "was " : "ended with ") +
                          process::describe(status) + "; " + then.why,
                      ends_->exit_code());
  for (std::size_t other = 0; other < agents_.size(); ++other)
    if (then.stop_all || static_cast<int>(other) == then.stop_one) stop(agents_[other]);
}

// An agent that ends by itself has swept what its workers left. The helpers of one that was killed
// are still at it; they have become children of this process, and collect() hears of their end.
void AgentsParent::sweep() {
  if (!agent_killed_ || !adopts_orphans_) return shutdown_.on_swept();
  sweep_limit_.expires_after(kSweepLimit);
  sweep_limit_.async_wait([this](asio::error_code cancelled) {
    if (!cancelled) shutdown_.on_swept();
  });
}

}  // namespace drun::launcher
