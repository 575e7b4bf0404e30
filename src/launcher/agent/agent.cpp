#include "launcher/agent/agent.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/addresses.hpp"
#include "base/exit_codes.hpp"
#include "base/open_files.hpp"
#include "drun/base/log.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/agent_signals.hpp"
#include "launcher/agent/output_flush.hpp"
#include "launcher/agent/shared_log_dedup.hpp"
#include "launcher/agent/shutdown_fsm.hpp"
#include "launcher/agent/status_reporter.hpp"
#include "launcher/agent/stop_requests.hpp"
#include "launcher/agent/store_linger.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kDrainLimit{1'000};

class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, SharedLogDedup* neighbours)
      : options_(options),
        host_name_(own_host_name()),
        single_node_(options.max_nodes == 1),
        signals_(io_, signals_of_agent(options)),
        timer_(io_),
        output_(output_options(options, host_name_)),
        status_({::isatty(STDERR_FILENO) == 1,
                 [this](std::string text) { output_.message(std::move(text)); },
                 [this](std::string text) { output_.status(std::move(text)); }},
                neighbours, single_node_),
        flush_(io_, {[this](milliseconds limit) { (void)output_.drain(limit); },
                     [this] { return output_.flush_progress(); }, [this] { output_.give_up(); }}),
        workers_(io_, options, host_name_, std::move(guardian), output_, worker_calls()),
        backend_(io_, options, host_name_, backend_calls()) {}

  int run() {
    signals_.start([this](int signal) { on_signal(signal); });
    workers_.listen();
    backend_.start();
    arm_timer();
    io_.run();
    return shutdown_.exit_code();
  }

  // After run(): true if the rest of the job may still be waiting for this agent: it never joined,
  // was refused, or lost the store.
  [[nodiscard]] bool unnoticed() const {
    using enum rendezvous::End;
    return !participant_ || outcome_.end == Refused || outcome_.end == StoreLost;
  }

 private:
  // ---- the backend and the rendezvous ----

  BackendLink::Calls backend_calls() {
    BackendLink::Calls calls;
    calls.waiting = [this](std::string text) {
      status_.waiting(std::move(text), Clock::now());
      arm_timer();
    };
    calls.joined = [this](const NodeIdentity& node) {
      participant_ = std::make_unique<rendezvous::Participant>(
          rendezvous_config(options_, node, backend_.time_left()), Clock::now());
    };
    calls.dispensable = [this] {
      return !shutdown_.leaving() && participant_ && participant_->dispensable();
    };
    calls.dropped = [this] { participant_.reset(); };
    calls.gave_up = [this](rendezvous::Outcome outcome) { finish(std::move(outcome)); };
    calls.event = [this](const rendezvous::KeyValueEvent& event) { on_key_value(event); };
    return calls;
  }

  void on_key_value(const rendezvous::KeyValueEvent& event) {
    const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
    if (link != nullptr && link->link == rendezvous::Link::Closed)
      return perform(shutdown_.on_link_closed());
    if (link != nullptr && link->link == rendezvous::Link::Failed)
      perform(shutdown_.on_link_failed());
    if (shutdown_.leaving()) return linger(event);
    participant_->on_key_value(event, Clock::now());
    pump();
  }

  // Does what the rendezvous asks for, until it has nothing more to ask.
  void pump() {
    workers_.on_time();
    if (participant_ && !shutdown_.leaving()) {
      for (auto actions = participant_->take_actions(); !actions.empty();
           actions = participant_->take_actions()) {
        for (auto& action : actions) {
          std::visit([this](auto& each) { perform(each); }, action);
          if (shutdown_.leaving()) return;
        }
      }
    }
    arm_timer();
  }

  void arm_timer() {
    if (shutdown_.leaving()) return;
    auto due = workers_.next_deadline(Clock::now());
    const auto include = [&due](std::optional<Clock::time_point> other) {
      if (other && (!due || *other < *due)) due = other;
    };
    if (participant_) include(participant_->next_deadline());
    include(status_.line().next_deadline());
    if (!due) {
      timer_.cancel();
      return;
    }
    timer_.expires_at(*due);
    timer_.async_wait([this](asio::error_code cancelled) {
      if (cancelled || shutdown_.leaving()) return;
      const auto now = Clock::now();
      if (const auto expired = workers_.expired(now)) end_at_limit(*expired, now);
      show_countdown(now, false);
      status_.line().on_time(now);
      if (participant_ && !shutdown_.leaving()) participant_->on_time(now);
      pump();
    });
  }

  void end_at_limit(const std::string& what, Clock::time_point now) {
    if (shutdown_.leaving()) return;
    status_.line().clear();
    status_.at_limit(workers_.group().describe(now));
    end_job(what, kTimeLimit);
  }

  // Ends the job on all nodes, or only this agent where it is not part of one yet.
  void end_job(const std::string& reason, int exit_code) {
    if (participant_) return participant_->on_stop_requested(reason, exit_code, Clock::now());
    finish(ended_early(rendezvous::End::Stopped, exit_code, reason));
  }

  void perform(rendezvous::WatchAction& action) {
    backend_.key_value().watch(action.watch, std::move(action.key), action.prefix);
  }
  void perform(const rendezvous::UnwatchAction& action) {
    backend_.key_value().unwatch(action.watch);
  }
  void perform(rendezvous::CommitAction& action) {
    backend_.key_value().commit(action.request, std::move(action.transaction));
  }

  void perform(const rendezvous::PrepareWorkerStoreAction& action) {
    const auto port = backend_.prepare_worker_store();
    if (!port)
      return participant_->on_stop_requested(port.error().what(), kDrunFailed, Clock::now());
    participant_->on_worker_store_ready(action.assignment.round, *port, Clock::now());
  }

  void perform(const rendezvous::StartAction& action) {
    status_.workers_start();
    workers_.start(action.assignment);
  }

  void perform(const rendezvous::StopAction& action) {
    const WorkerGroup& group = workers_.group();
    if (action.time_limit) status_.at_limit(group.describe(Clock::now()));
    // What is stopped at once has lost the store; that is reported when it is gone.
    if (!group.idle() && !action.immediately && !action.reason.empty())
      status_.stopping(action.reason);
    workers_.stop(action);
  }

  void perform(rendezvous::FinishAction& action) { finish(std::move(action.outcome)); }

  void perform(const rendezvous::ProgressAction& action) {
    status_.waiting(action.text, Clock::now());
  }

  void perform(const rendezvous::LogAction& action) {
    status_.line().clear();
    if (action.warning) {
      log::warning(action.text);
    } else {
      status_.state(action.text);
    }
  }

  void perform(const rendezvous::RoundStopsAction& action) {
    status_.line().clear();
    status_.stopping(action.reason);
  }

  // ---- the workers ----

  WorkerSupervisor::Calls worker_calls() {
    WorkerSupervisor::Calls calls;
    calls.news = [this](WorkerNews news, Clock::time_point now) {
      on_workers(std::move(news), now);
    };
    calls.batch_over = [this] { pump(); };
    calls.before_suspend = [this] { status_.line().clear(); };
    return calls;
  }

  void on_workers(WorkerNews news, Clock::time_point now) {
    status_.left_behind(news.left_behind);
    if (news.grace_begins && stop_requests_.any()) show_countdown(now, true);
    if (news.grace_over) status_.line().show("", now);
    if (news.swept) perform(shutdown_.on_swept());
    if (!news.guardian_ended.empty()) perform(shutdown_.on_guardian_lost());
    if (shutdown_.leaving()) return;
    if (!news.guardian_ended.empty()) {
      if (!participant_) return finish(backend_.failure(news.guardian_ended));
      status_.state(news.guardian_ended + "; its workers were killed");
    }
    if (participant_) tell_rendezvous(std::move(news), now);
  }

  void tell_rendezvous(WorkerNews news, Clock::time_point now) {
    const int round = workers_.group().round();
    GroupNews& group = news.group;
    if (group.started) participant_->on_workers_started(round, now);
    if (group.succeeded) participant_->on_workers_succeeded(round, now);
    if (group.failure) participant_->on_workers_failed(round, std::move(*group.failure), now);
    if (group.stopped) participant_->on_workers_stopped(now);
    if (!news.guardian_ended.empty())
      participant_->on_stop_requested(news.guardian_ended, kDrunFailed, now);
  }

  void show_countdown(Clock::time_point now, bool at_once) {
    if (const auto countdown = workers_.countdown(now, stop_requests_.any()))
      status_.line().show(*countdown, now, at_once);
  }

  // ---- signals ----

  void on_signal(int signal) {
    switch (meaning_of(signal, options_)) {
      case SignalMeaning::Resize:
        output_.resize();
        return workers_.forward(signal);
      case SignalMeaning::Forward:
        return workers_.forward(signal);
      case SignalMeaning::Suspend:
        return workers_.suspend();
      case SignalMeaning::Stop:
        break;
    }
    if (const auto level = stop_requests_.count(signal, Clock::now()))
      perform(shutdown_.on_stop(*level, signal));
  }

  // "received SIGTERM"
  [[nodiscard]] std::string request() const {
    return "received " + process::signal_name(shutdown_.signal());
  }

  // ---- leaving ----

  void finish(rendezvous::Outcome outcome) {
    if (shutdown_.leaving()) return;
    outcome_ = std::move(outcome);
    status_.line().show("", Clock::now());
    timer_.cancel();
    backend_.leave();
    perform(shutdown_.on_outcome(outcome_.exit_code, farewell()));
  }

  [[nodiscard]] Farewell farewell() const {
    if (!backend_.is_up()) return Farewell::None;
    return backend_.hosts_for_others() ? Farewell::ServeOthers : Farewell::Goodbye;
  }

  void perform(const ShutdownFsm::Steps& steps) {
    for (const auto step : steps)
      perform(step);
  }

  void perform(ShutdownFsm::Step step) {
    using enum ShutdownFsm::Step;
    switch (step) {
      case StopJob:
        return stop_job();
      case KillWorkers:
        return kill_workers();
      case Sweep:
        return workers_.sweep();
      case Report:
        return report();
      case ServeOthers:
        linger_.emplace(options_.run_id);
        return backend_.key_value().watch(StoreLinger::kWatch, std::string(rendezvous::kAllJobs),
                                          true);
      case SayGoodbye:
        return backend_.key_value().close();
      case Leave:
        return leave();
      case GiveUpReader:
        return flush_.give_up(request());
      case End:
        return signals_.cancel();
    }
  }

  void stop_job() {
    workers_.stop_with(shutdown_.signal());
    end_job(single_node_ ? request() : request() + " on " + host_name_, 128 + shutdown_.signal());
    pump();
  }

  void kill_workers() {
    status_.line().clear();
    log::warning(request() + " again: killing the workers");
    workers_.kill();
  }

  void report() {
    output_.drain(kDrainLimit);
    if (output_.lost_output()) shutdown_.on_output_lost();
    outcome_.exit_code = shutdown_.exit_code();
    report_outcome(options_, outcome_, output_.lost_logs(),
                   [this](std::string text) { status_.say(std::move(text)); });
    if (outcome_.failure)
      forward_error_file(options_, *outcome_.failure,
                         workers_.group().error_file(*outcome_.failure));
  }

  // Serves the store until no other job needs it. The last look is one step with the end of the
  // service, so that nobody comes in between; if somebody did, the watch tells.
  void linger(const rendezvous::KeyValueEvent& event) {
    if (shutdown_.phase() != ShutdownFsm::Phase::ServingOthers) return;
    const auto step = linger_->on_event(event);
    if (step == StoreLinger::Step::Say) log::warning(linger_->text());
    if (step == StoreLinger::Step::StopStore &&
        backend_.stop_hosting_unless([this](std::string_view key) { return linger_->needs(key); }))
      perform(shutdown_.on_store_unneeded());
  }

  // Nothing is waited for any more but who reads drun's output; then run() returns.
  void leave() {
    timer_.cancel();
    workers_.close();
    backend_.release();  // whoever takes the endpoint next does not wait for our reader
    flush_.start(shutdown_.exit_code(), stop_requests_.any(), [this](bool lost) {
      perform(shutdown_.on_flushed(lost));
      if (output_.lost_output()) shutdown_.on_output_lost();
    });
  }

  const Options& options_;
  const std::string host_name_;
  const bool single_node_;
  asio::io_context io_{1};
  CaughtSignals signals_;
  asio::steady_timer timer_;
  Output output_;
  StatusReporter status_;
  OutputFlush flush_;
  std::unique_ptr<rendezvous::Participant> participant_;
  WorkerSupervisor workers_;
  BackendLink backend_;
  rendezvous::Outcome outcome_;

  StopRequests stop_requests_;
  ShutdownFsm shutdown_;
  std::optional<StoreLinger> linger_;  // while other jobs may need the store
};

}  // namespace

int run_agent(const Options& options, SharedLogDedup* neighbours, std::atomic<bool>* unnoticed) {
  ignore_write_signals();
  return with_raised_open_files([&](const std::optional<rlimit>& before) {
    process::GuardianOptions guardian_options;
    guardian_options.open_files = before;
    Agent agent(options, process::Guardian::start(guardian_options), neighbours);
    const int code = agent.run();
    if (unnoticed != nullptr) *unnoticed = agent.unnoticed();
    return code;
  });
}

}  // namespace drun::launcher
