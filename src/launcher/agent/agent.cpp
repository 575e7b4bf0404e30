#include "launcher/agent/agent.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <asio/io_context.hpp>

#include "base/addresses.hpp"
#include "base/deadline.hpp"
#include "base/deadline_timer.hpp"
#include "base/fd_limit.hpp"
#include "base/log.hpp"
#include "launcher/agent/agent_services.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/agent_shutdown.hpp"
#include "launcher/agent/agent_signals.hpp"
#include "launcher/agent/agent_stacks.hpp"
#include "launcher/agent/event_reporter.hpp"
#include "launcher/agent/file_desk.hpp"
#include "launcher/agent/guardian_farewell.hpp"
#include "launcher/agent/hang_desk.hpp"
#include "launcher/agent/job_teller.hpp"
#include "launcher/agent/job_watchers.hpp"
#include "launcher/agent/leftovers.hpp"
#include "launcher/agent/own_facts.hpp"
#include "launcher/agent/own_status.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/agent/shared_log_dedup.hpp"
#include "launcher/agent/status_door.hpp"
#include "launcher/agent/status_reporter.hpp"
#include "launcher/agent/usage_teller.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/worker_supervisor.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// Only wires the parts together: they decide.
class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian, const std::optional<rlimit>& open_files,
        SharedLogDedup* neighbours)
      : options_(options),
        processes_(std::move(guardian)),
        host_name_(own_host_name()),
        signals_(io_, signals_of_agent(options)),
        timer_(io_, [this] { on_time(Clock::now()); }),
        files_(io_, [this] { pump(); }),
        output_(output_options(options, host_name_)),
        status_(standard_error(output_), neighbours, options.max_nodes == 1),
        events_(io_, options, host_name_),
        stacks_({io_, options, host_name_, output_, worker_output_, status_, group_call(),
                 [this] { pump(); }}),
        leftovers_(io_, options.keep_shm, options.max_restarts > 0 || options.max_nodes > 1, files_,
                   {group_call(), [this](const auto& text) { say(text); },
                    [this](const auto& text) { warn(text); }, [this] { pump(); }}),
        services_(io_, options, service_calls()),
        workers_(io_, options, host_name_, processes_, worker_output_, files_, worker_calls(),
                 watched_services()),
        backend_(io_, options, host_name_, backend_calls()),
        participant_(
            {options, host_name_, status_, workers_, backend_, events_, &files_,
             [this](const auto& action, auto go_on) {
               return stacks_.hold(action, std::move(go_on));
             }},
            [this](auto outcome) {
              forget_store();
              shutdown_.on_outcome(std::move(outcome));
            },
            [this] { hangs_.on_hang(); }),
        hangs_(
            {io_, options, workers_, participant_, events_, status_, stacks_, [this] { pump(); }}),
        facts_(io_, options, open_files,
               [this](std::string sheet) {
                 participant_.set_facts(std::move(sheet), Clock::now());
                 pump();
               }),
        teller_(io_, options.run_id),
        usage_(io_, host_name_, group_call()),
        door_(io_, options.run_id, door_answers()),
        watchers_(io_, options, host_name_, workers_.group(), events_.memory(), own_status_call()),
        shutdown_({io_, options, output_, status_, workers_, backend_, events_, watchers_.summary(),
                   watchers_.metrics_file()},
                  shutdown_calls()) {}

  int run() {
    events_.begin();
    signals_.start([this](int signal) { on_signal(signal); });
    workers_.listen();
    hangs_.start();
    shutdown_.begin();
    backend_.start();
    door_.open();
    watchers_.open();
    arm_timer();
    io_.run();
    if (output_.files()->remove_private_folder()) processes_.leave_folders();
    leftovers_.finish();
    processes_.end();  // they end while this process frees what it holds
    return shutdown_.exit_code();
  }

  [[nodiscard]] bool left_unannounced() const { return shutdown_.left_unannounced(); }

 private:
  RoundServices watched_services() {
    RoundServices services = services_.of_round();
    services.watch = events_.worker_watch();
    services.before_stop = &stacks_.before_stop();
    services.before_start = &leftovers_;
    return services;
  }

  std::function<status::AgentStatus()> own_status_call() {
    return [this] {
      auto own = own_status(options_, host_name_, workers_, status_, participant_);
      own.behind = hangs_.behind();
      if (const auto store = backend_.moved_to()) own.store = to_string(*store);
      return own;
    };
  }

  std::function<const WorkerGroup&()> group_call() {
    return [this]() -> const WorkerGroup& { return workers_.group(); };
  }

  AgentServices::Calls service_calls() {
    AgentServices::Calls calls;
    calls.on_fault = [this](int local_rank, const RankFault& fault) {
      workers_.on_fault(local_rank, fault);
      pump();
    };
    calls.on_timer = [this](const auto& timer) { hangs_.on_timer(timer); };
    calls.running = [this] { return workers_.group().running(); };
    calls.news = [this] { pump(); };
    return calls;
  }

  void say(const std::string& text) {
    status_.line().clear();
    log::info("{}", text);
  }
  void warn(const std::string& text) {
    status_.line().clear();
    log::warning("{}", text);
  }

  // It is not to be used any more.
  void forget_store() {
    stacks_.forget_store();
    hangs_.forget_store();
  }

  // Of those who look at the whole job; null: there is none.
  void set_link(rendezvous::KeyValue* link) {
    watchers_.set_link(link);
    teller_.set_link(link);
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
      facts_.gather(node);
      set_link(&backend_.key_value());
      hangs_.use_store(backend_.key_value(), node.ticket);
    };
    calls.dispensable = [this](bool known) { return participant_.dispensable(known); };
    calls.dropped = [this] {
      set_link(nullptr);
      forget_store();
      participant_.drop();
    };
    calls.gave_up = [this](auto outcome) { shutdown_.on_outcome(std::move(outcome)); };
    calls.session = [this](Farewells farewells) {
      workers_.say_at_end(guardian_farewell(std::move(farewells)));
    };
    calls.event = [this](const rendezvous::KeyValueEvent& event) {
      events_.on_link(event);
      if (watchers_.on_event(event) || teller_.on_event(event)) return;
      if (stacks_.on_event(event)) return;
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
      watchers_.on_workers(news.group);
      leftovers_.on_workers(news);
      // Not before: it is not needed for the start, and takes its time.
      if (news.group.started && options_.max_nodes > 1) stacks_.listen(backend_.key_value());
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
      participant_.on_stop_signal(request, signal, Clock::now());
      pump();
    };
    calls.refuse_job = [this](const std::string& why) {
      participant_.refuse_job(why, Clock::now());
      pump();
    };
    calls.left_unannounced = [this](auto end) { return participant_.left_unannounced(end); };
    calls.leads = [this] { return participant_.leads(); };
    calls.leaves_store = [this] { set_link(nullptr); };
    calls.gone = [this] {
      signals_.cancel();
      timer_.set(std::nullopt);
      files_.cancel();
      services_.end();
      stacks_.cancel();
      hangs_.cancel();
      leftovers_.cancel();
      door_.close();
      teller_.cancel();
      usage_.cancel();
      facts_.cancel();
      watchers_.close();
    };
    return calls;
  }

  StatusDoor::Answers door_answers() {
    StatusDoor::Answers answers;
    answers.status = own_status_call();
    answers.stacks = [this](bool whole_job, bool unwind, const StatusDoor::Say& say) {
      stacks_.answer(whole_job, unwind, say);
    };
    answers.job = [this](StatusDoor::Say say) { teller_.ask(std::move(say)); };
    answers.usage = [this](StatusDoor::Say say) { usage_.ask(std::move(say)); };
    return answers;
  }

  void on_signal(int signal) {
    const SignalMeaning meaning = meaning_of(signal, options_, shutdown_.asked_to_stop());
    events_.on_signal(signal, meaning);
    switch (meaning) {
      case SignalMeaning::Resize:
        output_.resize();
        return workers_.forward(signal);
      case SignalMeaning::Forward:
        status_.forwarded(signal, !workers_.group().has_workers());
        return workers_.forward(signal);
      case SignalMeaning::Stacks:
        return stacks_.show();
      case SignalMeaning::Suspend:
        return workers_.suspend();
      case SignalMeaning::Stop:
        return shutdown_.on_stop_signal(signal);
    }
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
  GuardianRunner processes_;  // its end is waited for last
  const std::string host_name_;
  asio::io_context io_{1};
  CaughtSignals signals_;
  DeadlineTimer timer_;
  FileDesk files_;
  Output output_;
  RealOutput worker_output_{output_};
  StatusReporter status_;
  EventReporter events_;
  AgentStacks stacks_;
  Leftovers leftovers_;
  AgentServices services_;
  WorkerSupervisor workers_;
  BackendLink backend_;
  ParticipantDriver participant_;
  HangDesk hangs_;
  OwnFacts facts_;
  JobTeller teller_;
  UsageTeller usage_;
  StatusDoor door_;
  JobWatchers watchers_;
  AgentShutdown shutdown_;
};

}  // namespace

int run_agent(const Options& options, SharedLogDedup* neighbours, std::atomic<bool>* unannounced) {
  ignore_write_signals();
  return with_raised_fd_limit([&](const std::optional<rlimit>& before) {
    process::GuardianOptions guardian_options;
    guardian_options.open_files = before;
    Agent agent(options, process::Guardian::start(guardian_options), before, neighbours);
    const int code = agent.run();
    if (unannounced != nullptr) *unannounced = agent.left_unannounced();
    return code;
  });
}

}  // namespace drun::launcher
