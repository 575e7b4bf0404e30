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
#include <asio/posix/stream_descriptor.hpp>
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
#include "launcher/agent/status_reporter.hpp"
#include "launcher/agent/stop_requests.hpp"
#include "launcher/agent/store_linger.hpp"
#include "launcher/agent/terminal_input.hpp"
#include "launcher/agent/time_limits.hpp"
#include "launcher/backend/private_key_value.hpp"
#include "launcher/backend/store_finder.hpp"
#include "launcher/backend/store_host.hpp"
#include "launcher/backend/store_key_value.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kConnectingInterval{500};
constexpr const char* kWaitLonger =
    "; start drun on the node that has this address, or wait longer with --rdzv-conf "
    "join_timeout=SECONDS";

class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, SharedLogDedup* neighbours)
      : options_(options),
        host_name_(own_host_name()),
        single_node_(options.max_nodes == 1),
        guardian_(std::move(guardian)),
        guardian_events_(io_, ::dup(guardian_.fd())),
        signals_(io_, options),
        timer_(io_),
        input_(io_, options.local_node >= 0 ? ::getpgid(::getppid()) : ::getpgrp()),
        output_(output_options(options, host_name_)),
        voice_(output_, neighbours, single_node_),
        reader_(io_, output_),
        group_(options, host_name_, processes_, worker_output_),
        limits_(options, Clock::now()),
        join_deadline_(Clock::now() + options.conf.join_timeout),
        finder_(io_, options, store_, join_deadline_, finder_calls()) {}

  int run() {
    signals_.start([this](SignalMeaning meaning, int signal) { on_signal(meaning, signal); });
    wait_for_guardian();
    finder_.find();
    arm_timer();
    io_.run();
    return outcome_.exit_code;
  }

  // After run(): the others of the job wait for this agent still.
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
      auto keys = std::make_unique<PrivateKeyValue>(io_, key_value_sink());
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
    voice_.waiting("waiting " +
                       rendezvous::clock_text(std::chrono::duration_cast<milliseconds>(elapsed)) +
                       ": " + what,
                   now);
  }

  void connect(const Endpoint& endpoint, Clock::duration limit) {
    auto link = std::make_unique<StoreKeyValue>(
        io_, store_options(options_, endpoint, std::chrono::duration_cast<milliseconds>(limit)),
        key_value_sink());
    link_ = link.get();
    key_value_ = std::move(link);
    link_->open();
    pump();
  }

  StoreKeyValue::Sink key_value_sink() {
    return [this](const rendezvous::KeyValueEvent& event) { on_key_value(event); };
  }

  // ---- the rendezvous ----

  void on_key_value(const rendezvous::KeyValueEvent& event) {
    if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) {
      if (link->link == rendezvous::Link::Closed) return leave_for_good();
      link_failed_ = link->link == rendezvous::Link::Failed;
      if (!participant_) {
        if (link->link == rendezvous::Link::Failed)
          return fail(link->detail + finder_.holder(), finder_.holder().empty() ? kWaitLonger : "");
        if (link->link != rendezvous::Link::Up) return;
        if (!begin_rendezvous()) return;
      }
    }
    if (lost_unregistered(event)) return;
    if (serve_on_) {
      const auto step = serve_on_->on_event(event);
      if (step == StoreLinger::Step::Say) log::warning(serve_on_->text());
      if (step == StoreLinger::Step::Leave) leave_store();
    }
    if (leaving_ || !participant_) return;
    participant_->on_key_value(event, Clock::now());
    pump();
  }

  // The store went away before it knew this agent, with another job's agent perhaps: nobody counts
  // on this one yet, so it looks for the store as if it had not found it.
  bool lost_unregistered(const rendezvous::KeyValueEvent& event) {
    const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
    const bool down = link != nullptr && link->link == rendezvous::Link::Down;
    if (!down || leaving_ || finder_.hosting() || !participant_->dispensable()) return false;
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
          finder_.hold_worker_port(options_.local_addr.value_or(link_->local_address()));
      if (!held) return fail(held.error().what()), false;
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
    apply(group_.on_time(Clock::now()));
    if (participant_ && !leaving_) {
      for (auto actions = participant_->take_actions(); !actions.empty();
           actions = participant_->take_actions()) {
        for (auto& action : actions) {
          std::visit([this](auto& each) { perform(each); }, action);
          if (leaving_) return;
        }
      }
    }
    arm_timer();
  }

  void arm_timer() {
    if (leaving_) return;
    auto due = group_.next_deadline();
    const auto include = [&due](std::optional<Clock::time_point> other) {
      if (other && (!due || *other < *due)) due = other;
    };
    if (participant_) include(participant_->next_deadline());
    include(voice_.progress().next_deadline());
    include(limits_.next_deadline(Clock::now()));
    if (link_ && !participant_) include(Clock::now() + kConnectingInterval);
    if (!due) return static_cast<void>(timer_.cancel());
    timer_.expires_at(*due);
    timer_.async_wait([this](asio::error_code cancelled) {
      if (cancelled || leaving_) return;
      const auto now = Clock::now();
      if (const auto expired = limits_.expired(now)) end_at_limit(*expired, now);
      if (const auto countdown =
              limits_.countdown(now, stop_requests_.any(), single_node_ ? stop_reason_ : ""))
        voice_.progress().show(*countdown, now);
      if (link_ && !participant_ && !leaving_ && !finder_.host_after_all()) {
        const auto cause = link_->last_error();
        waiting_for("the store at " + to_string(options_.endpoint) + ": " +
                    (cause.empty() ? "no answer yet" : cause) + finder_.holder());
      }
      voice_.progress().on_time(now);
      if (participant_ && !leaving_) participant_->on_time(now);
      pump();
    });
  }

  void end_at_limit(const std::string& what, Clock::time_point now) {
    if (leaving_) return;
    voice_.progress().clear();
    voice_.at_limit(group_.describe(now));
    stop_job(what, kTimeLimit);
  }

  // Ends the job on all nodes, or only this agent where it is not part of one yet.
  void stop_job(const std::string& reason, int exit_code) {
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
    voice_.workers_start();
    if (restart_count_ < action.assignment.restart_count && single_node_) {
      log::info("restart " + std::to_string(action.assignment.restart_count) + " of " +
                std::to_string(options_.max_restarts) + " after " + failure_);
    }
    restart_count_ = action.assignment.restart_count;
    group_.start(action.assignment, Clock::now());
    watch_input();
  }

  void perform(const rendezvous::StopAction& action) {
    if (!action.reason.empty()) stop_reason_ = action.reason;
    if (action.time_limit) voice_.at_limit(group_.describe(Clock::now()));
    if (action.signal != 0) group_.stop_with(action.signal);
    // What is stopped at once has lost the store; that is reported when it is gone.
    if (!group_.idle() && !action.immediately && !action.reason.empty())
      voice_.stopping(action.reason);
    if (!group_.idle() && !action.immediately && !limits_.in_grace()) begin_grace(Clock::now());
    apply(group_.stop(action.immediately));
  }

  void begin_grace(Clock::time_point now) {
    limits_.grace_begins(now);
    if (stop_requests_.any()) voice_.progress().show(*limits_.countdown(now, true, ""), now, true);
  }

  void perform(rendezvous::FinishAction& action) { finish(std::move(action.outcome)); }

  void perform(const rendezvous::ProgressAction& action) {
    voice_.waiting(action.text, Clock::now());
  }

  void perform(const rendezvous::LogAction& action) {
    voice_.progress().clear();
    action.warning ? log::warning(action.text) : voice_.state(action.text);
  }

  void perform(const rendezvous::RoundStopsAction& action) {
    voice_.progress().clear();
    voice_.stopping(action.reason);
  }

  // ---- the workers ----

  void wait_for_guardian() {
    guardian_events_.async_wait(
        asio::posix::descriptor_base::wait_read, [this](asio::error_code cancelled) {
          if (cancelled) return;
          const auto now = Clock::now();
          for (const auto& event : guardian_.receive()) {
            if (const auto* lost = std::get_if<process::GuardianLost>(&event))
              return on_guardian_lost(*lost);
            const auto* stopped = std::get_if<process::Stopped>(&event);
            if (stopped != nullptr) voice_.left_behind(process::describe(*stopped));
            if (stopped != nullptr && leaving_) {
              if (!std::exchange(swept_, true)) close_store();
              continue;
            }
            apply(group_.on_event(event, now));
          }
          if (!swept_) wait_for_guardian();
          pump();
        });
  }

  void apply(GroupNews news) {
    if (!participant_ || leaving_) return;
    const auto now = Clock::now();
    if (news.started) limits_.workers_run();
    if (news.started) participant_->on_workers_started(group_.round(), now);
    if (news.succeeded) participant_->on_workers_succeeded(group_.round(), now);
    if (news.failure) {
      failure_ = describe(*news.failure);
      participant_->on_workers_failed(group_.round(), std::move(*news.failure), now);
    }
    if (news.stopped) {
      if (limits_.in_grace()) voice_.progress().show("", now);
      limits_.grace_ends();
    }
    if (news.stopped) participant_->on_workers_stopped(now);
  }

  void on_guardian_lost(const process::GuardianLost& lost) {
    guardian_lost_ = true;
    const std::string reason = process::describe(lost);
    if (leaving_ || !participant_) {
      if (!leaving_) return fail(reason);
      swept_ = true;
      return close_store();
    }
    voice_.state(reason + "; its workers were killed");
    apply(group_.abandon());
    participant_->on_stop_requested(reason, kDrunFailed, Clock::now());
    pump();
  }

  // ---- signals ----

  void on_signal(SignalMeaning meaning, int signal) {
    if (meaning == SignalMeaning::Resize) output_.resize();
    if (meaning == SignalMeaning::Resize || meaning == SignalMeaning::Forward)
      return group_.forward(signal);
    if (meaning == SignalMeaning::Suspend) {
      voice_.progress().clear();
      // While the workers are being stopped for good they need their time.
      leaving_ || limits_.in_grace() ? suspend() : static_cast<void>(suspend_with(guardian_));
      return watch_input();
    }
    const std::string reason = "received " + process::signal_name(signal);
    if (!stop_requests_.count(signal, Clock::now())) return;
    if (reader_.started()) return reader_.give_up(reason);
    if (stop_requests_.number() > 1) {
      voice_.progress().clear();
      log::warning(reason + " again: killing the workers");
      if (!guardian_lost_) guardian_.stop(SIGKILL, milliseconds(0));
      if (stop_requests_.number() > 2 || leaving_) {
        end_with(signal);
        impatient_ = true;
        if (swept_ || guardian_lost_) leave_for_good();
      }
      return;
    }
    if (leaving_) return stop_serving();
    group_.stop_with(signal);
    stop_job(single_node_ ? reason : reason + " on " + host_name_, 128 + signal);
    pump();
  }

  // A signal cut the end of the job short.
  void end_with(int signal) {
    if (outcome_.exit_code == 0) outcome_.exit_code = 128 + signal;
  }

  void watch_input() {
    input_.cancel();
    if (!leaving_ && group_.has_input()) input_.watch([this] { on_background_read(); });
  }

  // A worker reads the terminal while drun is in the background: as any job, it waits for the shell
  // to bring it to the foreground.
  void on_background_read() {
    if (leaving_ || limits_.in_grace()) return;
    voice_.progress().clear();
    if (options_.local_node >= 0) {
      input_.cancel();
      ::kill(::getppid(), SIGTTIN);  // the shell's job; it suspends its agents
    } else if (!suspend_with(guardian_, SIGTTIN)) {
      input_.cancel();
    }
  }

  // ---- leaving ----

  // Before the rendezvous. Where only the join timeout ended the attempts, the exit code says so.
  void fail(std::string text, const char* advice = "") {
    const bool in_time = Clock::now() + kConnectingInterval < join_deadline_;
    if (!in_time) text += advice;
    finish(in_time ? ended_early(rendezvous::End::StoreLost, kDrunFailed, std::move(text))
                   : ended_early(rendezvous::End::Timeout, kTimeLimit, std::move(text)));
  }

  // Says how it ended, then sweeps what the workers left behind, then says goodbye to the store.
  void finish(rendezvous::Outcome outcome) {
    if (leaving_) return;
    leaving_ = true;
    outcome_ = std::move(outcome);
    voice_.progress().show("", Clock::now());
    timer_.cancel();
    finder_.cancel();
    if (guardian_lost_) {
      swept_ = true;
      close_store();
    } else {
      // Each process gets the signal once.
      guardian_.stop(group_.stopping() ? 0 : group_.stop_signal(), options_.shutdown_timeout);
    }
  }

  void close_store() {
    report_outcome(options_, outcome_, output_,
                   [this](std::string text) { voice_.say(std::move(text)); });
    if (outcome_.failure)
      pass_on(options_, *outcome_.failure, group_.error_file(*outcome_.failure));
    if (!key_value_ || !participant_ || impatient_ || link_failed_) return leave_for_good();
    const bool shared = finder_.hosting() && options_.backend != Backend::Standalone;
    if (!shared || stop_requests_.any()) return key_value_->close();
    serve_on_.emplace(options_.run_id);
    key_value_->watch(StoreLinger::kWatch, std::string(rendezvous::kAllJobs), true);
  }

  // In one step with the last look at who needs the store, so that nobody comes in between. Who
  // does is told of by the watch.
  void leave_store() {
    if (!link_failed_ &&
        !store_.stop_unless([this](std::string_view key) { return serve_on_->needs(key); }))
      return;
    serve_on_.reset();
    leave_for_good();
  }

  void stop_serving() {
    if (!serve_on_) return;
    serve_on_.reset();
    link_failed_ ? leave_for_good() : key_value_->close();
  }

  // Nothing is waited for any more but who reads drun's output; then run() returns.
  void leave_for_good() {
    timer_.cancel();
    guardian_events_.cancel();
    input_.cancel();
    // This may run inside a call from it. Whoever takes the endpoint next does not wait either.
    asio::post(io_, [this] {
      key_value_.reset();
      store_.end();
    });
    reader_.start(outcome_.exit_code, stop_requests_.any(), [this](bool lost) {
      if (lost) end_with(stop_requests_.last());
      if (output_.lost_output() && outcome_.exit_code == 0) outcome_.exit_code = kDrunFailed;
      signals_.cancel();
    });
  }

  const Options& options_;
  const std::string host_name_;
  const bool single_node_;
  asio::io_context io_{1};
  process::Guardian guardian_;
  asio::posix::stream_descriptor guardian_events_;
  AgentSignals signals_;
  asio::steady_timer timer_;
  BackgroundInput input_;
  Output output_;
  StatusReporter voice_;
  OutputFlush reader_;
  StoreHost store_;
  std::unique_ptr<rendezvous::KeyValue> key_value_;
  StoreKeyValue* link_ = nullptr;  // the same, where it is a store
  std::unique_ptr<rendezvous::Participant> participant_;
  GuardianRunner processes_{guardian_};
  RealOutput worker_output_{output_};
  WorkerGroup group_;
  TimeLimits limits_;
  const Clock::time_point join_deadline_;
  StoreFinder finder_;
  rendezvous::Outcome outcome_;

  std::string ticket_;       // of this agent among the members
  std::string stop_reason_;  // short enough for a line of a terminal
  std::string failure_;      // the last one here, in full
  int restart_count_ = 0;
  StopRequests stop_requests_;
  bool link_failed_ = false;  // nobody to say goodbye to
  bool guardian_lost_ = false;
  bool leaving_ = false;                 // the outcome is known
  bool swept_ = false;                   // nothing of the workers is left
  bool impatient_ = false;               // a third signal: no goodbyes
  std::optional<StoreLinger> serve_on_;  // while other jobs may need the store
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
