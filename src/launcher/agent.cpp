#include "launcher/agent.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "drun/base/log.hpp"
#include "launcher/addresses.hpp"
#include "launcher/atomic_file.hpp"
#include "launcher/failure_report.hpp"
#include "launcher/master_port.hpp"
#include "launcher/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/progress.hpp"
#include "launcher/store_host.hpp"
#include "launcher/store_key_value.hpp"
#include "launcher/worker_group.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstResolveRetry{250};
constexpr milliseconds kLastResolveRetry{5'000};
constexpr milliseconds kConnectingInterval{500};
constexpr milliseconds kCountdownInterval{1'000};
constexpr milliseconds kStopMargin{15'000};  // beyond the grace: SIGKILL, the proof, a busy machine
constexpr int kDrunFailed = 125;
constexpr int kTimeLimit = 124;

rendezvous::ExitCodePolicy exit_code_policy(ExitCodeRule rule) {
  switch (rule) {
    case ExitCodeRule::First:
      return rendezvous::ExitCodePolicy::First;
    case ExitCodeRule::Max:
      return rendezvous::ExitCodePolicy::Max;
    case ExitCodeRule::Root:
      break;
  }
  return rendezvous::ExitCodePolicy::Root;
}

std::string random_ticket() {
  std::random_device random;
  std::string ticket;
  for (int i = 0; i < 4; ++i) {
    char part[9];
    std::snprintf(part, sizeof part, "%08x", static_cast<unsigned>(random()));
    ticket += part;
  }
  return ticket;
}

// The waiting line is drun's alone: no worker runs while it is shown.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

class Agent {
 public:
  Agent(const Options& options, process::Guardian guardian)
      : options_(options),
        host_name_(own_host_name()),
        guardian_(std::move(guardian)),
        guardian_events_(io_, ::dup(guardian_.fd())),
        signals_(io_),
        timer_(io_),
        resolve_timer_(io_),
        resolver_(io_),
        output_(output_options(options, host_name_)),
        group_(options, host_name_, guardian_, output_),
        progress_(::isatty(STDERR_FILENO) == 1,
                  [](std::string_view text) { write_all(STDERR_FILENO, text); }),
        join_deadline_(Clock::now() + options.conf.join_timeout) {
    if (options.timeout) job_deadline_ = Clock::now() + *options.timeout;
    if (options.start_timeout) start_deadline_ = Clock::now() + *options.start_timeout;
  }

  int run() {
    // Undone on every way out: what is thrown from here is logged when this object is gone.
    const std::unique_ptr<Agent, void (*)(Agent*)> redirected(this,
                                                              [](Agent*) { log::redirect({}); });
    log::redirect([this](std::string line) { output_.message(std::move(line)); });
    for (const int signal : options_.signals_to_handle)
      signals_.add(signal);
    for (const int signal : options_.forward_signals)
      signals_.add(signal);
    wait_for_signal();
    wait_for_guardian();
    find_store();
    arm_timer();
    io_.run();
    if (resolving_) leave_resolver_behind();
    return outcome_.exit_code;
  }

 private:
  static OutputOptions output_options(const Options& options, const std::string& host) {
    OutputOptions result;
    result.choices = options.output;
    result.run_id = options.run_id;
    result.host = host;
    for (const std::string_view entry : options.inherited) {
      constexpr std::string_view kName = "TMPDIR=";
      if (entry.starts_with(kName) && entry.size() > kName.size())
        result.temporary = entry.substr(kName.size());
    }
    result.terminal = true;
    result.tail_lines = options.output.tail_lines;
    return result;
  }

  // ---- finding the store
  // -------------------------------------------------------------------------------------------

  void find_store() {
    if (options_.backend == Backend::Standalone) {
      host_rendezvous(Endpoint{"127.0.0.1", 0});
    } else if (options_.conf.is_host && !*options_.conf.is_host) {
      connect(options_.endpoint, options_.conf.join_timeout);
    } else if (const auto numeric = numeric_addresses(options_.endpoint.host); !numeric.empty()) {
      host_or_connect(numeric);
    } else {
      resolve();
    }
  }

  // Whether this machine is to host is a question of addresses, so a name must be resolved first; a
  // name that is not there yet (a pod that is still to start) is asked for again.
  void resolve() {
    resolving_ = true;
    resolver_.async_resolve(
        options_.endpoint.host, std::to_string(options_.endpoint.port),
        [this](asio::error_code error, const asio::ip::tcp::resolver::results_type& found) {
          resolving_ = false;
          if (leaving_) return;
          if (error) return resolve_later(error);
          std::vector<std::string> addresses;
          for (const auto& entry : found)
            addresses.push_back(entry.endpoint().address().to_string());
          host_or_connect(addresses);
        });
  }

  // getaddrinfo() cannot be interrupted and may take a minute; drun was told to stop now.
  // Everything is swept and said.
  [[noreturn]] void leave_resolver_behind() const {
    std::fflush(nullptr);
    std::_Exit(outcome_.exit_code);
  }

  void resolve_later(asio::error_code error) {
    const std::string what = "cannot resolve '" + options_.endpoint.host + "': " + error.message();
    const auto now = Clock::now();
    if (now >= join_deadline_) return fail(what + "; check --rdzv-endpoint");
    progress_.show(what + "; trying again", now);
    resolve_timer_.expires_at(std::min(join_deadline_, now + resolve_retry_));
    resolve_retry_ = std::min<Clock::duration>(kLastResolveRetry, resolve_retry_ * 3 / 2);
    resolve_timer_.async_wait([this](asio::error_code cancelled) {
      if (!cancelled && !leaving_) resolve();
    });
    arm_timer();
  }

  void host_or_connect(const std::vector<std::string>& addresses) {
    const bool ours = options_.conf.is_host.value_or(
        std::any_of(addresses.begin(), addresses.end(),
                    [](const std::string& each) { return is_own_address(each); }));
    if (!ours || (options_.backend == Backend::Static && options_.node_rank.value_or(0) != 0 &&
                  !options_.conf.is_host)) {
      return connect(options_.endpoint, join_deadline_ - Clock::now());
    }
    host_rendezvous(listen_endpoint());
  }

  // Where to listen: on the very address that was named, as long as it is one of ours. A name may
  // mean other addresses elsewhere (Debian's own host name is 127.0.1.1 at home), so it means all
  // of them.
  Endpoint listen_endpoint() const {
    const auto numeric = numeric_addresses(options_.endpoint.host);
    const bool exact = !numeric.empty() && is_own_address(numeric.front());
    return Endpoint{exact ? numeric.front() : "", options_.endpoint.port};
  }

  void host_rendezvous(const Endpoint& endpoint) {
    const auto bound = store_.carry_rendezvous(endpoint, options_.backend == Backend::Static);
    if (bound) {
      hosting_ = true;
      auto own = *bound;
      own.host = endpoint.host.empty() ? "127.0.0.1" : endpoint.host;
      if (options_.backend == Backend::Static) {
        advertised_ = options_.endpoint;
        worker_port_ = own.port;
      } else if (!hold_worker_port(advertised_host(own.host))) {
        return;
      }
      store_.serve();
      return connect(own, milliseconds(5'000));
    }
    if (bound.error().code() != std::errc::address_in_use ||
        options_.conf.is_host.value_or(false)) {
      return fail(bound.error().what());
    }
    // Another agent of this machine was first; or something that is no store, which the handshake
    // will tell.
    connect(options_.endpoint, join_deadline_ - Clock::now());
  }

  // The address of this machine that others use: what the user said, else the endpoint's, which
  // they reach it by.
  std::string advertised_host(const std::string& bound_host) const {
    if (options_.local_addr) return *options_.local_addr;
    return options_.backend == Backend::Standalone ? bound_host : options_.endpoint.host;
  }

  // Binds the port of this agent's workers' store, to keep. False: failed, and said so.
  bool hold_worker_port(const std::string& address) {
    advertised_.host = address;
    if (options_.worker_store == WorkerStore::Rank0) return true;
    const auto numeric = numeric_addresses(address);
    const bool exact = !numeric.empty() && is_own_address(numeric.front());
    // Static: --master-port is the endpoint, which the node of rank 0 holds already.
    const bool fixed = options_.master_port && options_.backend != Backend::Static;
    const auto bound = store_.carry_workers(
        Endpoint{exact ? numeric.front() : "", fixed ? *options_.master_port : std::uint16_t{0}});
    if (!bound) {
      fail(bound.error().what() + "; it was to be the port of the workers' store");
      return false;
    }
    worker_port_ = bound->port;
    return true;
  }

  void connect(const Endpoint& endpoint, Clock::duration limit) {
    StoreKeyValueOptions options;
    options.endpoint = endpoint;
    options.connect_timeout =
        std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(limit));
    options.time_to_live = keep_alive() + kSessionMargin;
    options.keep_alive = keep_alive();
    key_value_ = std::make_unique<StoreKeyValue>(
        io_, options, [this](rendezvous::KeyValueEvent event) { on_key_value(event); });
    key_value_->open();
    pump();
  }

  // The store's sessions outlive what their agents allow themselves, so that a node that was cut
  // off has no workers any more when the others go on without it.
  static constexpr milliseconds kSessionMargin{2'000};
  // A store of one's own cannot be cut off: a suspended job (Ctrl-Z, a laptop's lid) goes on where
  // it was.
  static constexpr std::chrono::hours kForever{24 * 365};
  milliseconds keep_alive() const {
    if (options_.backend == Backend::Standalone) return kForever;
    return options_.conf.keep_alive_interval * options_.conf.keep_alive_max_attempt;
  }

  // ---- the rendezvous
  // ------------------------------------------------------------------------------------------------

  void on_key_value(const rendezvous::KeyValueEvent& event) {
    if (const auto* link = std::get_if<rendezvous::LinkEvent>(&event)) {
      if (link->link == rendezvous::Link::Closed) return leave_for_good();
      link_failed_ = link->link == rendezvous::Link::Failed;
      if (!participant_) {
        if (link->link == rendezvous::Link::Failed) return fail(link->detail);
        if (link->link != rendezvous::Link::Up) return;
        if (!begin_rendezvous()) return;
      }
    }
    if (leaving_ || !participant_) return;
    participant_->on_key_value(event, Clock::now());
    pump();
  }

  bool begin_rendezvous() {
    if (!hosting_ && !hold_worker_port(options_.local_addr.value_or(key_value_->local_address())))
      return false;
    rendezvous::Settings settings;
    settings.run_id = options_.run_id;
    settings.min_nodes = options_.min_nodes;
    settings.max_nodes = options_.max_nodes;
    settings.local_world_size = options_.nproc_per_node;
    settings.max_restarts = options_.max_restarts;
    settings.role = options_.role;
    settings.node_rank = options_.node_rank;
    settings.host = host_name_;
    settings.address = advertised_.host;
    settings.worker_port = worker_port_;
    settings.is_host = hosting_;
    settings.ticket = random_ticket();
    settings.agreement["worker-store"] =
        options_.worker_store == WorkerStore::Agent ? "agent" : "rank0";
    settings.join_timeout = std::chrono::duration_cast<milliseconds>(join_deadline_ - Clock::now());
    settings.last_call_timeout = options_.conf.last_call_timeout;
    settings.close_timeout = options_.conf.close_timeout;
    settings.keep_alive = keep_alive();
    settings.stop_timeout = options_.shutdown_timeout + kStopMargin;
    settings.rank_order = options_.rank_order;
    settings.resize = options_.resize;
    settings.exit_code = exit_code_policy(options_.exit_code);
    participant_ = std::make_unique<rendezvous::Participant>(std::move(settings), Clock::now());
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
    include(progress_.next_deadline());
    include(job_deadline_);
    include(start_deadline_);
    if (kill_at_) include(Clock::now() + kCountdownInterval);
    if (key_value_ && !participant_) include(Clock::now() + kConnectingInterval);
    if (!due) return static_cast<void>(timer_.cancel());
    timer_.expires_at(*due);
    timer_.async_wait([this](asio::error_code cancelled) {
      if (cancelled || leaving_) return;
      const auto now = Clock::now();
      progress_.on_time(now);
      check_time_limits(now);
      if (kill_at_) show_countdown(now);
      if (key_value_ && !participant_ && !leaving_) {
        progress_.show("waiting for the store at " + to_string(options_.endpoint) + ": " +
                           key_value_->last_error(),
                       now);
      }
      if (participant_ && !leaving_) participant_->on_time(now);
      pump();
    });
  }

  void check_time_limits(Clock::time_point now) {
    if (start_deadline_ && now >= *start_deadline_) {
      start_deadline_.reset();
      end_at_limit("the workers were not running when --start-timeout was over", now);
    }
    if (job_deadline_ && now >= *job_deadline_) {
      job_deadline_.reset();
      end_at_limit("--timeout is over", now);
    }
  }

  void show_countdown(Clock::time_point now) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(*kill_at_ - now).count();
    if (left < 0) return;
    progress_.show("stopping the workers; SIGKILL in " + std::to_string(left) + " s" +
                       (signals_received_ > 0 ? " (Ctrl-C again: now)" : ""),
                   now);
  }

  void end_at_limit(const std::string& what, Clock::time_point now) {
    if (leaving_) return;
    progress_.clear();
    for (const auto& line : group_.describe(now))
      log::warning(line);
    stop_job(what, kTimeLimit);
  }

  // Ends the job on all nodes, or only this agent where it is not part of one yet.
  void stop_job(const std::string& reason, int exit_code) {
    if (participant_) return participant_->on_stop_requested(reason, exit_code, Clock::now());
    rendezvous::Outcome outcome;
    outcome.end = rendezvous::End::Stopped;
    outcome.exit_code = exit_code;
    outcome.text = reason;
    finish(std::move(outcome));
  }

  void perform(rendezvous::WatchAction& action) {
    key_value_->watch(action.watch, std::move(action.key), action.prefix);
  }
  void perform(const rendezvous::UnwatchAction& action) { key_value_->unwatch(action.watch); }
  void perform(rendezvous::CommitAction& action) {
    key_value_->commit(action.request, std::move(action.transaction));
  }

  void perform(const rendezvous::PrepareMasterAction& action) {
    auto port = worker_port_;
    if (options_.worker_store == WorkerStore::Agent) {
      const auto reset = store_.reset_workers();
      if (!reset)
        return participant_->on_stop_requested(reset.error().what(), kDrunFailed, Clock::now());
    } else if (options_.master_port) {
      port = *options_.master_port;
    } else {
      const auto found = find_worker_port();
      if (!found)
        return participant_->on_stop_requested(found.error().what(), kDrunFailed, Clock::now());
      port = *found;
    }
    participant_->on_master_ready(action.assignment.round, port, Clock::now());
  }

  void perform(const rendezvous::StartAction& action) {
    progress_.clear();
    if (restart_count_ < action.assignment.restart_count && single_node()) {
      log::info("restart " + std::to_string(action.assignment.restart_count) + " of " +
                std::to_string(options_.max_restarts) + " after " + stop_reason_);
    }
    restart_count_ = action.assignment.restart_count;
    group_.start(action.assignment, Clock::now());
  }

  void perform(const rendezvous::StopAction& action) {
    if (!action.reason.empty()) stop_reason_ = action.reason;
    if (!group_.idle() && !action.reason.empty()) chat("stopping the workers: " + action.reason);
    if (!group_.idle() && !action.immediately) kill_at_ = Clock::now() + options_.shutdown_timeout;
    apply(group_.stop(action.immediately, Clock::now()));
  }

  void perform(rendezvous::FinishAction& action) { finish(std::move(action.outcome)); }

  void perform(const rendezvous::LogAction& action) {
    progress_.clear();
    action.warning ? log::warning(action.text) : chat(action.text);
  }

  bool single_node() const { return options_.max_nodes == 1; }

  // State changes: worth a line each where several machines are involved, noise where one runs a
  // program.
  void chat(const std::string& text) const { single_node() ? log::debug(text) : log::info(text); }

  void perform(const rendezvous::ProgressAction& action) {
    progress_.show(action.text, Clock::now());
  }

  // ---- the workers
  // ---------------------------------------------------------------------------------------------------

  void wait_for_guardian() {
    guardian_events_.async_wait(
        asio::posix::descriptor_base::wait_read, [this](asio::error_code cancelled) {
          if (cancelled) return;
          const auto now = Clock::now();
          for (const auto& event : guardian_.receive()) {
            if (const auto* lost = std::get_if<process::GuardianLost>(&event))
              return on_guardian_lost(*lost);
            if (std::holds_alternative<process::Stopped>(event) && leaving_) {
              swept_ = true;
              close_store();
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
    if (news.started) start_deadline_.reset();
    if (news.started) participant_->on_workers_started(group_.round(), now);
    if (news.succeeded) participant_->on_workers_succeeded(group_.round(), now);
    if (news.failure) stop_reason_ = describe(*news.failure);
    if (news.failure)
      participant_->on_workers_failed(group_.round(), std::move(*news.failure), now);
    if (news.stopped) {
      if (kill_at_) progress_.show("", now);
      kill_at_.reset();
    }
    if (news.stopped) participant_->on_workers_stopped(now);
  }

  void on_guardian_lost(const process::GuardianLost& lost) {
    guardian_lost_ = true;
    const std::string reason =
        "drun's guardian process ended (" + process::describe(lost.status) + ")";
    if (leaving_ || !participant_) {
      if (!leaving_) return fail(reason);
      swept_ = true;
      return close_store();
    }
    log::error(reason + "; its workers are being killed");
    apply(group_.abandon());
    participant_->on_stop_requested(reason, kDrunFailed, Clock::now());
    pump();
  }

  // ---- signals
  // -------------------------------------------------------------------------------------------------------

  void wait_for_signal() {
    signals_.async_wait([this](asio::error_code cancelled, int signal) {
      if (cancelled) return;
      on_signal(signal);
      if (!left_) wait_for_signal();
    });
  }

  // Ctrl-Z: the workers, which are in groups of their own, stop and go on with drun.
  void suspend() {
    progress_.clear();
    guardian_.signal_all(SIGSTOP);
    ::raise(SIGSTOP);
    guardian_.signal_all(SIGCONT);
  }

  void on_signal(int signal) {
    if (signal == SIGWINCH) {
      output_.resize();
      return group_.forward(SIGWINCH);
    }
    if (signal == SIGTSTP) return suspend();
    const auto& forwarded = options_.forward_signals;
    if (std::find(forwarded.begin(), forwarded.end(), signal) != forwarded.end())
      return group_.forward(signal);
    const std::string reason = "received " + process::signal_name(signal);
    if (++signals_received_ > 1) {
      progress_.clear();
      log::warning(reason + " again: killing the workers");
      if (!guardian_lost_) guardian_.stop(SIGKILL, milliseconds(0));
      if (signals_received_ > 2 || leaving_) {
        outcome_.exit_code = outcome_.exit_code != 0 ? outcome_.exit_code : 128 + signal;
        impatient_ = true;
        if (swept_ || guardian_lost_) leave_for_good();
      }
      return;
    }
    if (leaving_) return;
    stop_job(reason, 128 + signal);
    pump();
  }

  // ---- leaving
  // -------------------------------------------------------------------------------------------------------

  // Before the rendezvous. Where only the join timeout ended the attempts, the exit code says so.
  void fail(std::string text) {
    const bool in_time = Clock::now() + kConnectingInterval < join_deadline_;
    rendezvous::Outcome outcome;
    outcome.end = in_time ? rendezvous::End::StoreLost : rendezvous::End::Timeout;
    outcome.exit_code = in_time ? kDrunFailed : kTimeLimit;
    outcome.text = std::move(text);
    finish(std::move(outcome));
  }

  // Says how it ended, then sweeps what the workers left behind, then says goodbye to the store.
  void finish(rendezvous::Outcome outcome) {
    if (leaving_) return;
    leaving_ = true;
    outcome_ = std::move(outcome);
    progress_.show("", Clock::now());
    timer_.cancel();
    resolve_timer_.cancel();
    resolver_.cancel();
    if (guardian_lost_) {
      swept_ = true;
      close_store();
    } else {
      guardian_.stop(options_.stop_signal, options_.shutdown_timeout);
    }
  }

  void close_store() {
    report();
    if (key_value_ && participant_ && !impatient_ && !link_failed_) {
      key_value_->close();
    } else {
      leave_for_good();
    }
  }

  void report() {
    output_.drain(milliseconds(1'000));
    if (outcome_.failure) {
      print_failure(*outcome_.failure);
    } else if (outcome_.end != rendezvous::End::Success) {
      log::error(outcome_.text);
    }
    if (options_.report_file.empty()) return;
    const auto written =
        write_whole_file(options_.report_file, render_report_json(outcome_, {}, {}));
    if (!written) log::error("--report: " + written.error().what());
  }

  void print_failure(const rendezvous::FailureSummary& failure) {
    if (options_.local_node > 0) return;  // its neighbour of this machine says the same
    ReportOptions report;
    report.lines = report_lines(options_.output.tail_lines);
    output_.message(render_failure(failure, {}, {}, report));
  }

  // Nothing is waited for any more, so run() returns.
  void leave_for_good() {
    left_ = true;
    signals_.cancel();
    timer_.cancel();
    guardian_events_.cancel();
    asio::post(io_, [this] { key_value_.reset(); });  // this may run inside a call from it
  }

  const Options& options_;
  const std::string host_name_;
  asio::io_context io_{1};
  process::Guardian guardian_;
  asio::posix::stream_descriptor guardian_events_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  asio::steady_timer resolve_timer_;
  asio::ip::tcp::resolver resolver_;
  Output output_;
  StoreHost store_;
  std::unique_ptr<StoreKeyValue> key_value_;
  std::unique_ptr<rendezvous::Participant> participant_;
  WorkerGroup group_;
  Progress progress_;
  rendezvous::Outcome outcome_;

  Clock::time_point join_deadline_;
  std::optional<Clock::time_point> job_deadline_;
  std::optional<Clock::time_point> start_deadline_;
  std::optional<Clock::time_point> kill_at_;  // when the grace of the stop under way is over
  Clock::duration resolve_retry_ = kFirstResolveRetry;
  Endpoint advertised_;            // host: what becomes MASTER_ADDR when this node has group rank 0
  std::uint16_t worker_port_ = 0;  // of this agent's workers' store
  std::string stop_reason_;
  int restart_count_ = 0;
  int signals_received_ = 0;
  bool resolving_ = false;
  bool hosting_ = false;
  bool link_failed_ = false;  // nobody to say goodbye to
  bool guardian_lost_ = false;
  bool leaving_ = false;    // the outcome is known
  bool swept_ = false;      // nothing of the workers is left
  bool left_ = false;       // run() is about to return
  bool impatient_ = false;  // a third signal: no goodbyes
};

}  // namespace

int run_agent(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);
  auto guardian = process::Guardian::start();
  Agent agent(options, std::move(guardian));
  return agent.run();
}

}  // namespace drun::launcher
