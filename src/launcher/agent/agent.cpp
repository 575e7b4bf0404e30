#include "launcher/agent/agent.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "base/exit_codes.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/agent_shutdown.hpp"
#include "launcher/agent/agent_signals.hpp"
#include "launcher/agent/file_desk.hpp"
#include "launcher/agent/own_ranks.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/agent/shared_log_dedup.hpp"
#include "launcher/agent/status_reporter.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/output/output.hpp"
#include "launcher/output/output_terminal.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/workers/worker_supervisor.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr const char* kOwnRanks =
    "the program has started processes with Python's multiprocessing, and none of them has come to "
    "the workers' store; if they are ranks that wait for one another at a MASTER_PORT of their "
    "own, use --worker-store rank0, or start the program without drun";

// Only wires the parts together: they decide.
class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, SharedLogDedup* neighbours)
      : options_(options),
        host_name_(own_host_name()),
        signals_(io_, signals_of_agent(options)),
        timer_(io_),
        files_(io_, [this] { pump(); }),
        output_(output_options(options, host_name_)),
        status_({::isatty(STDERR_FILENO) == 1,
                 [this](std::string text) { output_.message(std::move(text)); },
                 [this](std::string text) { output_.status(std::move(text)); },
                 [] { return columns_of(STDERR_FILENO); }},
                neighbours, single_node()),
        processes_(std::move(guardian)),
        workers_(io_, options, host_name_, processes_, worker_output_, files_, worker_calls()),
        backend_(io_, options, host_name_, backend_calls()),
        participant_({options, status_, workers_, backend_},
                     [this](rendezvous::Outcome outcome) { finish(std::move(outcome)); }),
        shutdown_({io_, options, output_, status_, workers_, backend_}, shutdown_calls()) {}

  int run() {
    signals_.start([this](int signal) { on_signal(signal); });
    workers_.listen();
    backend_.start();
    arm_timer();
    io_.run();
    return shutdown_.exit_code();
  }

  // After run(): true if the rest of the job may wait for this agent or go on without it: it never
  // joined, was refused, was told to go, or lost the store.
  [[nodiscard]] bool left_unannounced() const {
    using enum rendezvous::End;
    const auto end = shutdown_.outcome().end;
    return !participant_.joined() || told_to_go_ || end == Refused || end == StoreLost;
  }

 private:
  [[nodiscard]] bool single_node() const { return options_.max_nodes == 1; }

  // ---- what the parts say ----

  BackendLink::Calls backend_calls() {
    BackendLink::Calls calls;
    calls.waiting = [this](std::string text) {
      status_.waiting(std::move(text), Clock::now());
      arm_timer();
    };
    calls.joined = [this](const NodeIdentity& node) { participant_.join(node); };
    calls.dispensable = [this] { return !shutdown_.leaving() && participant_.dispensable(); };
    calls.dropped = [this] { participant_.drop(); };
    calls.gave_up = [this](rendezvous::Outcome outcome) { finish(std::move(outcome)); };
    calls.session = [this](std::optional<store::ControlFarewell> farewell) {
      process::Farewell words;
      if (farewell) words = {std::move(farewell->address), std::move(farewell->bytes)};
      workers_.say_at_end(words);
    };
    calls.event = [this](const rendezvous::KeyValueEvent& event) { on_event(event); };
    return calls;
  }

  void on_event(const rendezvous::KeyValueEvent& event) {
    shutdown_.on_event(event);
    if (!shutdown_.leaving()) {
      participant_.on_event(event, Clock::now());
      return pump();
    }
    // Its workers have left the round; what is left of them is swept under the lease.
    if (const auto* renewed = std::get_if<rendezvous::Renewed>(&event))
      participant_.renew_lease(renewed->sent);
  }

  WorkerSupervisor::Calls worker_calls() {
    WorkerSupervisor::Calls calls;
    calls.news = [this](WorkerNews news, Time now) { on_workers(std::move(news), now); };
    calls.batch_over = [this] { pump(); };
    calls.before_suspend = [this] { status_.line().clear(); };
    return calls;
  }

  void on_workers(WorkerNews news, Time now) {
    status_.left_behind(news.left_behind);
    if (news.grace_begins && shutdown_.stop_requested()) show_countdown(now, true);
    if (news.grace_over) status_.line().show("", now);
    if (news.swept) shutdown_.on_swept();
    const bool guardian_lost = !news.guardian_ended.empty();
    if (guardian_lost) shutdown_.on_guardian_lost();
    if (shutdown_.leaving()) return;
    if (guardian_lost && !participant_.joined())
      return finish(backend_.failure(news.guardian_ended));
    if (guardian_lost) status_.state(news.guardian_ended + "; its workers were killed");
    told_to_go_ |= guardian_lost && is_elastic(options_);
    if (news.group.started && backend_.awaits_client()) own_ranks_.begin(now);
    if (news.group.stopped) own_ranks_.end();
    if (participant_.joined()) participant_.on_workers(std::move(news), now);
  }

  AgentShutdown::Calls shutdown_calls() {
    AgentShutdown::Calls calls;
    calls.stop_job = [this](const std::string& request, int signal) {
      const std::string reason = single_node() ? request : request + " on " + host_name_;
      told_to_go_ = takes_node_out(signal, options_) && participant_.joined();
      if (told_to_go_) {
        participant_.leave_job(reason, exit_code_of_signal(signal), Clock::now());
      } else {
        end_job(reason, exit_code_of_signal(signal));
      }
      pump();
    };
    calls.gone = [this] {
      signals_.cancel();
      timer_.cancel();
      files_.cancel();
    };
    return calls;
  }

  void on_signal(int signal) {
    switch (meaning_of(signal, options_)) {
      case SignalMeaning::Resize:
        output_.resize();
        return workers_.forward(signal);
      case SignalMeaning::Forward:
        say_forwarded(signal);
        return workers_.forward(signal);
      case SignalMeaning::Suspend:
        return workers_.suspend();
      case SignalMeaning::Stop:
        return shutdown_.on_stop_signal(signal);
    }
  }

  // Some are sent again and again: a line each time that something else becomes of it.
  void say_forwarded(int signal) {
    const bool nobody = !workers_.group().has_workers();
    const auto told = forwarded_.find(signal);
    if (told != forwarded_.end() && told->second == nobody) return;
    forwarded_[signal] = nobody;
    status_.line().clear();
    const std::string text = forward_text(signal, nobody, !single_node());
    log::write(nobody ? log::Level::Warning : log::Level::Info, "{}", text);
  }

  // ---- time ----

  // Does what has become due, and what the rendezvous asks for.
  void pump() {
    workers_.on_time();
    if (shutdown_.leaving()) return;
    participant_.perform_actions();
    arm_timer();
  }

  void arm_timer() {
    if (shutdown_.leaving()) return;
    EarliestDeadline due;
    due.include(workers_.next_deadline(Clock::now()));
    due.include(participant_.next_deadline());
    due.include(status_.line().next_deadline());
    due.include(own_ranks_.next_deadline());
    timer_.cancel();
    if (!due.time()) return;
    timer_.expires_at(*due.time());
    timer_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled && !shutdown_.leaving()) on_time(Clock::now());
    });
  }

  void on_time(Time now) {
    if (const auto limit = workers_.expired(now)) {
      status_.line().clear();
      status_.at_limit(workers_.group().describe(now));
      end_job(*limit, kTimeLimit);
      if (shutdown_.leaving()) return;
    }
    if (own_ranks_.on_time(now, backend_.awaits_client())) log::warning("{}", kOwnRanks);
    show_countdown(now, false);
    status_.line().on_time(now);
    participant_.on_time(now);
    pump();
  }

  void show_countdown(Time now, bool at_once) {
    if (const auto countdown = workers_.countdown(now, shutdown_.stop_requested()))
      status_.line().show(*countdown, now, at_once);
  }

  // ---- the end ----

  // Ends the job on all nodes, or only this agent if it is not part of one yet.
  void end_job(const std::string& reason, int exit_code) {
    if (participant_.joined()) return participant_.stop_job(reason, exit_code, Clock::now());
    finish(ended_early(rendezvous::End::Stopped, exit_code, reason));
  }

  void finish(rendezvous::Outcome outcome) {
    timer_.cancel();
    shutdown_.on_outcome(std::move(outcome));
  }

  const Options& options_;
  const std::string host_name_;
  asio::io_context io_{1};
  CaughtSignals signals_;
  asio::steady_timer timer_;
  FileDesk files_;
  Output output_;
  RealOutput worker_output_{output_};
  StatusReporter status_;
  GuardianRunner processes_;
  WorkerSupervisor workers_;
  BackendLink backend_;
  ParticipantDriver participant_;
  AgentShutdown shutdown_;
  OwnRanks own_ranks_{look_for_own_ranks};
  bool told_to_go_ = false;
  std::map<int, bool> forwarded_;  // of a signal: whether it was said that nobody got it
};

}  // namespace

int run_agent(const Options& options, SharedLogDedup* neighbours, std::atomic<bool>* unannounced) {
  ignore_write_signals();
  return with_raised_fd_limit([&](const std::optional<rlimit>& before) {
    process::GuardianOptions guardian_options;
    guardian_options.open_files = before;
    Agent agent(options, process::Guardian::start(guardian_options), neighbours);
    const int code = agent.run();
    if (unannounced != nullptr) *unannounced = agent.left_unannounced();
    return code;
  });
}

}  // namespace drun::launcher
