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
#include <asio/post.hpp>
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
#include "launcher/backend/hosted_store.hpp"
#include "launcher/backend/in_process_backend.hpp"
#include "launcher/backend/store_backend.hpp"
#include "launcher/backend/store_finder.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kConnectingInterval{500};
constexpr milliseconds kDrainLimit{1'000};
constexpr const char* kWaitLonger =
    "; start drun on the node that has this address, or wait longer with --rdzv-conf "
    "join_timeout=SECONDS";

class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, SharedLogDedup* neighbours)
      : options_(options),
        host_name_(own_host_name()),
        single_node_(options.max_nodes == 1),
        signals_(io_, options),
        timer_(io_),
        output_(output_options(options, host_name_)),
        status_({::isatty(STDERR_FILENO) == 1,
                 [this](std::string text) { output_.message(std::move(text)); },
                 [this](std::string text) { output_.status(std::move(text)); }},
                neighbours, single_node_),
        flush_(io_, {[this](milliseconds limit) { (void)output_.drain(limit); },
                     [this] { return output_.flush_progress(); }, [this] { output_.give_up(); }}),
        workers_(io_, options, host_name_, std::move(guardian), output_, worker_calls()),
        join_deadline_(Clock::now() + options.conf.join_timeout),
        finder_(io_, options, store_, join_deadline_, finder_calls()) {}

  int run() {
    signals_.start([this](SignalMeaning meaning, int signal) { on_signal(meaning, signal); });
    workers_.listen();
    finder_.find();
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
  // ---- the store ----

  StoreFinder::Calls finder_calls() {
    StoreFinder::Calls calls;
    calls.connect = [this](const Endpoint& endpoint, Clock::duration limit) {
      connect(endpoint, limit);
    };
    calls.go_alone = [this] {
      auto keys = std::make_unique<InProcessBackend>(io_, key_value_sink());
      keys->open();
      key_value_ = std::move(keys);
    };
    calls.fail = [this](std::string reason) { fail(std::move(reason)); };
    calls.wait = [this](const std::string& reason) {
      waiting_for(reason);
      arm_timer();
    };
    return calls;
  }

  void waiting_for(const std::string& what) {
    const auto now = Clock::now();
    const auto elapsed = now - (join_deadline_ - options_.conf.join_timeout);
    status_.waiting("waiting " +
                        rendezvous::clock_text(std::chrono::duration_cast<milliseconds>(elapsed)) +
                        ": " + what,
                    now);
  }

  void connect(const Endpoint& endpoint, Clock::duration limit) {
    auto link = std::make_unique<StoreBackend>(
        io_, store_options(options_, endpoint, std::chrono::duration_cast<milliseconds>(limit)),
        key_value_sink());
    link_ = link.get();
    key_value_ = std::move(link);
    link_->open();
    pump();
  }

  StoreBackend::Sink key_value_sink() {
    return [this](const rendezvous::KeyValueEvent& event) { on_key_value(event); };
  }

  // ---- the rendezvous ----

  void on_key_value(const rendezvous::KeyValueEvent& event) {
    const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
    if (link != nullptr && link->link == rendezvous::Link::Closed)
      return perform(shutdown_.on_link_closed());
    if (link != nullptr && link->link == rendezvous::Link::Failed)
      perform(shutdown_.on_link_failed());
    if (shutdown_.leaving()) return linger(event);
    if (!participant_ && (link == nullptr || !on_first_link(*link))) return;
    if (lost_unregistered(event)) return;
    participant_->on_key_value(event, Clock::now());
    pump();
  }

  // Whether the rendezvous has begun.
  bool on_first_link(const rendezvous::LinkEvent& link) {
    if (link.link == rendezvous::Link::Failed)
      fail(link.detail + finder_.holder(), finder_.holder().empty() ? kWaitLonger : "");
    return link.link == rendezvous::Link::Up && begin_rendezvous();
  }

  // The store went away before it knew this agent, with another job's agent perhaps: nobody counts
  // on this one yet, so it looks for the store as if it had not found it.
  bool lost_unregistered(const rendezvous::KeyValueEvent& event) {
    const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
    const bool down = link != nullptr && link->link == rendezvous::Link::Down;
    if (!down || finder_.hosting() || !participant_->dispensable()) return false;
    const std::string cause = link->detail;
    participant_.reset();
    link_ = nullptr;
    key_value_.reset();
    finder_.find_again(cause);
    return true;
  }

  bool begin_rendezvous() {
    if (!finder_.hosting()) {
      const auto held =
          finder_.bind_worker_store(options_.local_addr.value_or(link_->local_address()));
      if (!held) {
        fail(held.error().what());
        return false;
      }
    }
    const auto now = Clock::now();
    auto settings =
        rendezvous_config(options_, finder_.identity(host_name_),
                          std::chrono::duration_cast<milliseconds>(join_deadline_ - now));
    // The same node to a store that it comes back to.
    if (!ticket_.empty()) settings.ticket = ticket_;
    ticket_ = settings.ticket;
    participant_ = std::make_unique<rendezvous::Participant>(std::move(settings), now);
    return true;
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
    if (link_ && !participant_) include(Clock::now() + kConnectingInterval);
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
      if (link_ && !participant_ && !shutdown_.leaving() && !finder_.host_after_all()) {
        const auto cause = link_->last_error();
        waiting_for("the store at " + to_string(options_.endpoint) + ": " +
                    (cause.empty() ? "no answer yet" : cause) + finder_.holder());
      }
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
    key_value_->watch(action.watch, std::move(action.key), action.prefix);
  }
  void perform(const rendezvous::UnwatchAction& action) { key_value_->unwatch(action.watch); }
  void perform(rendezvous::CommitAction& action) {
    key_value_->commit(action.request, std::move(action.transaction));
  }

  void perform(const rendezvous::PrepareMasterAction& action) {
    const auto port = finder_.prepare_master();
    if (!port)
      return participant_->on_stop_requested(port.error().what(), kDrunFailed, Clock::now());
    participant_->on_master_ready(action.assignment.round, *port, Clock::now());
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
      if (!participant_) return fail(news.guardian_ended);
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

  void on_signal(SignalMeaning meaning, int signal) {
    switch (meaning) {
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

  // Before the rendezvous. Where only the join timeout ended the attempts, the exit code says so.
  void fail(std::string text, const char* advice = "") {
    const bool in_time = Clock::now() + kConnectingInterval < join_deadline_;
    if (!in_time) text += advice;
    finish(in_time ? ended_early(rendezvous::End::StoreLost, kDrunFailed, std::move(text))
                   : ended_early(rendezvous::End::Timeout, kTimeLimit, std::move(text)));
  }

  void finish(rendezvous::Outcome outcome) {
    if (shutdown_.leaving()) return;
    outcome_ = std::move(outcome);
    status_.line().show("", Clock::now());
    timer_.cancel();
    finder_.cancel();
    perform(shutdown_.on_outcome(outcome_.exit_code, farewell()));
  }

  [[nodiscard]] Farewell farewell() const {
    if (!key_value_ || !participant_) return Farewell::None;
    const bool shared = finder_.hosting() && options_.backend != Backend::Standalone;
    return shared ? Farewell::ServeOthers : Farewell::Goodbye;
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
        return key_value_->watch(StoreLinger::kWatch, std::string(rendezvous::kAllJobs), true);
      case SayGoodbye:
        return key_value_->close();
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
        store_.stop_unless([this](std::string_view key) { return linger_->needs(key); }))
      perform(shutdown_.on_store_unneeded());
  }

  // Nothing is waited for any more but who reads drun's output; then run() returns.
  void leave() {
    timer_.cancel();
    workers_.close();
    // This may run inside a call from it. Whoever takes the endpoint next does not wait either.
    asio::post(io_, [this] {
      key_value_.reset();
      store_.end();
    });
    flush_.start(shutdown_.exit_code(), stop_requests_.any(), [this](bool lost) {
      perform(shutdown_.on_flushed(lost));
      if (output_.lost_output()) shutdown_.on_output_lost();
    });
  }

  const Options& options_;
  const std::string host_name_;
  const bool single_node_;
  asio::io_context io_{1};
  AgentSignals signals_;
  asio::steady_timer timer_;
  Output output_;
  StatusReporter status_;
  OutputFlush flush_;
  HostedStore store_;
  std::unique_ptr<rendezvous::KeyValue> key_value_;
  StoreBackend* link_ = nullptr;  // the same, where it is a store
  std::unique_ptr<rendezvous::Participant> participant_;
  WorkerSupervisor workers_;
  const Clock::time_point join_deadline_;
  StoreFinder finder_;
  rendezvous::Outcome outcome_;

  std::string ticket_;  // of this agent among the members
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
