#include "launcher/agent/agent.hpp"

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <asio/io_context.hpp>

#include "base/addresses.hpp"
#include "base/counted.hpp"
#include "base/deadline.hpp"
#include "base/deadline_timer.hpp"
#include "base/fd_limit.hpp"
#include "base/file_desk.hpp"
#include "launcher/agent/agent_services.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/agent_watch.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/job_stacks/agent_stacks.hpp"
#include "launcher/leaving/agent_shutdown.hpp"
#include "launcher/leaving/guardian_farewell.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/shared_log_dedup.hpp"
#include "launcher/telling/shared_stop_reason.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/watch/leftovers.hpp"
#include "launcher/workers/worker_supervisor.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// Only wires the parts together: they decide.
class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, const std::optional<rlimit>& open_files,
        SharedLogDedup* neighbours, SharedStopReason* why_stopped)
      : options_(options),
        why_stopped_(why_stopped),
        processes_(std::move(guardian)),
        host_name_(own_host_name()),
        signals_(io_, signals_of_agent(options)),
        timer_(io_, [this] { on_time(Clock::now()); }),
        files_(io_, [this] { pump(); }),
        output_(output_options(options, host_name_)),
        status_(standard_error(output_), neighbours, options.max_nodes == 1),
        events_(io_, options, host_name_),
        stacks_({io_, options, host_name_, output_, output_, status_, group_, [this] { pump(); },
                 [this](bool held) { watch_.on_held(held); }}),
        leftovers_(io_, options.keep_shm, options.max_restarts > 0 || options.max_nodes > 1, files_,
                   {group_, status_, [this] { pump(); }}),
        services_(io_, options, service_calls()),
        workers_(io_, options, host_name_, processes_, output_, files_, worker_calls(),
                 services_.beside({.watch = events_.worker_watch(),
                                   .before_stop = &stacks_.before_stop(),
                                   .before_start = &leftovers_})),
        backend_(io_, options, host_name_, backend_calls()),
        participant_(
            {options, host_name_, status_, workers_, backend_, events_, &files_,
             [this](const auto& action, auto go_on) {
               return watch_.hold(action, std::move(go_on));
             }},
            [this](auto outcome) {
              watch_.job_over();
              shutdown_.on_outcome(std::move(outcome));
            },
            [this] { watch_.on_hang(); }),
        watch_({io_, options, host_name_, workers_, backend_, participant_, events_, status_,
                stacks_, gpus_, [this] { pump(); }},
               open_files),
        shutdown_({io_, options, output_, status_, workers_, backend_, events_, watch_.summary(),
                   watch_.metrics_file()},
                  shutdown_calls()) {}

  int run(std::atomic<bool>* unannounced) {
    events_.tell_gpus(gpus_);
    events_.begin();
    if (options_.local_node >= 0 || !options_.output.own_words.begin.empty())
      status_.all_nodes_get_signals();
    signals_.start([this](int signal) { on_signal(signal); });
    workers_.listen();
    shutdown_.begin();
    backend_.start();
    watch_.start();
    arm_timer();
    io_.run();
    if (output_.files()->remove_private_folder()) processes_.leave_folders();
    leftovers_.finish();
    processes_.end();  // they end while this process frees what it holds
    if (unannounced != nullptr) *unannounced = shutdown_.left_unannounced();
    return shutdown_.exit_code();
  }

 private:
  AgentServices::Calls service_calls() {
    AgentServices::Calls calls;
    calls.on_fault = [this](int local_rank, const RankFault& fault) {
      workers_.on_fault(local_rank, fault);
      pump();
    };
    calls.on_timer = [this](const auto& timer) { watch_.on_timer(timer); };
    calls.running = [this] { return workers_.group().running(); };
    calls.news = [this] { pump(); };
    return calls;
  }

  BackendLink::Calls backend_calls() {
    BackendLink::Calls calls;
    calls.waiting = [this](std::string text) {
      status_.waiting(std::move(text), Clock::now());
      arm_timer();
    };
    calls.joined = [this](const NodeIdentity& node) {
      services_.join(node);
      events_.joined(node);
      participant_.join(node);
      watch_.joined(node);
    };
    calls.dispensable = [this](bool known) { return participant_.dispensable(known); };
    calls.dropped = [this] {
      watch_.dropped();
      participant_.drop();
    };
    calls.gave_up = [this](auto outcome) { shutdown_.on_outcome(std::move(outcome)); };
    calls.session = [this](Farewells farewells) {
      workers_.say_at_end(guardian_farewell(std::move(farewells)));
    };
    calls.event = [this](const rendezvous::KeyValueEvent& event) {
      events_.on_link(event);
      if (watch_.on_event(event)) return;
      shutdown_.on_event(event);
      participant_.on_event(event, Clock::now());
      pump();
    };
    return calls;
  }

  WorkerSupervisor::Calls worker_calls() {
    WorkerSupervisor::Calls calls;
    calls.news = [this](WorkerNews news, Time now) {
      events_.on_workers(news);
      watch_.on_workers(news.group);
      leftovers_.on_workers(news);
      shutdown_.on_workers(news, now);
      if (!shutdown_.leaving()) participant_.on_workers(std::move(news), now);
    };
    calls.batch_over = [this] { pump(); };
    calls.before_suspend = [this] { status_.line().clear(); };
    return calls;
  }

  AgentShutdown::Calls shutdown_calls() {
    AgentShutdown::Calls calls;
    calls.stop_job = [this](const std::string& request, int signal) {
      const auto why = why_stopped_ != nullptr ? why_stopped_->get() : std::nullopt;
      if (why)
        participant_.stop_job(why->text, why->exit_code, Clock::now());
      else
        participant_.on_stop_signal(request, signal, Clock::now());
      pump();
    };
    calls.refuse_job = [this](const std::string& why) {
      participant_.refuse_job(why, Clock::now());
      pump();
    };
    calls.left_unannounced = [this](auto end) { return participant_.left_unannounced(end); };
    calls.leads = [this] { return participant_.leads(); };
    calls.leaves_store = [this] { watch_.leaves_store(); };
    calls.tell_end = [this](const auto& outcome) { watch_.tell_end(outcome); };
    calls.others_at_end = [this] { return participant_.others_at_end(); };
    calls.left_files = [this] { return watch_.left_files(); };
    calls.gone = [this] {
      signals_.cancel();
      timer_.set(std::nullopt);
      files_.cancel();
      services_.end();
      stacks_.cancel();
      leftovers_.cancel();
      watch_.cancel();
    };
    return calls;
  }

  void on_signal(int signal) {
    const SignalMeaning meaning = meaning_of(signal, options_, shutdown_.asked_to_stop());
    events_.on_signal(signal, meaning);
    if (meaning == SignalMeaning::Stop) return shutdown_.on_stop_signal(signal);
    if (meaning == SignalMeaning::Suspend) return workers_.suspend();
    if (meaning == SignalMeaning::Stacks) return stacks_.show();
    if (meaning == SignalMeaning::Resize) output_.resize();
    if (meaning == SignalMeaning::Forward)
      status_.forwarded(signal, !workers_.group().has_workers());
    workers_.forward(signal);
  }

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
    timer_.set(due.time());
  }

  void on_time(Time now) {
    if (shutdown_.leaving()) return;
    participant_.on_time(now);
    if (shutdown_.leaving()) return;
    shutdown_.on_time(now);
    status_.line().on_time(now);
    pump();
  }

  const Options& options_;
  SharedStopReason* const why_stopped_;  // null: who sends a signal has no reason to tell
  process::Guardian processes_;          // its end is waited for last
  const std::string host_name_;
  const std::function<const WorkerGroup&()> group_ = [this]() -> auto& { return workers_.group(); };
  asio::io_context io_{1};
  CaughtSignals signals_;
  DeadlineTimer timer_;
  FileDesk files_;
  Output output_;
  StatusReporter status_;
  GpuLedger gpus_;
  EventReporter events_;
  AgentStacks stacks_;
  Leftovers leftovers_;
  AgentServices services_;
  WorkerSupervisor workers_;
  BackendLink backend_;
  ParticipantDriver participant_;
  AgentWatch watch_;
  AgentShutdown shutdown_;
};

// One that ran out of them later would end alone, and the other nodes would wait for it.
void check_descriptors(const Options& options) {
  rlimit limit{};
  constexpr std::size_t kGpuWatch = 6;
  const std::size_t needed = descriptors_needed(options) + (tells_usage(options) ? kGpuWatch : 0U);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  throw std::runtime_error("an agent with " + counted(options.nproc_per_node, "worker") +
                           " needs " + std::to_string(needed) +
                           " open descriptors, and the hard limit is " +
                           std::to_string(limit.rlim_cur) + "; raise it (ulimit -n)");
}

}  // namespace

int run_agent(const Options& options, SharedLogDedup* neighbours, std::atomic<bool>* unannounced,
              SharedStopReason* why_stopped) {
  ignore_write_signals();
  return with_raised_fd_limit([&](const std::optional<rlimit>& before) {
    check_descriptors(options);
    process::GuardianOptions guardian_options;
    guardian_options.open_files = before;
    return Agent(options, process::Guardian::start(guardian_options), before, neighbours,
                 why_stopped)
        .run(unannounced);
  });
}

}  // namespace drun::launcher
