#include "launcher/telling/event_reporter.hpp"

#include <unistd.h>

#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "base/template_text.hpp"
#include "drun/version.hpp"
#include "launcher/event_sinks/event_sink.hpp"
#include "launcher/process/exit_status.hpp"
#include "rendezvous/messages.hpp"

namespace drun::launcher {
namespace {

using events::Event;
using events::Kind;

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::C10d:
      return "c10d";
    case Backend::Static:
      return "static";
    case Backend::Etcd:
      return "etcd";
    case Backend::Standalone:
      break;
  }
  return "standalone";
}

std::string nodes_of(const JobShape& shape) {
  const std::string most = std::to_string(shape.max_nodes);
  return shape.min_nodes == shape.max_nodes ? most : std::to_string(shape.min_nodes) + ":" + most;
}

// Where others meet it; a job of one node has no such place, nor one on one machine.
std::string endpoint_of(const Options& options) {
  return options.max_nodes > 1 && options.local_node < 0 ? meeting_place(options) : "";
}

std::unique_ptr<EventSink> sink_of(const Options& options, const std::string& host) {
  const EventTarget& target = *options.events.target;
  std::string path;
  if (target.kind == EventTarget::Kind::File)
    path = fill_template(target.text, {{"hostname", host}, {"run_id", options.run_id}});
  return make_event_sink(target, std::move(path), options.output.log_max_size);
}

std::int64_t nanoseconds(auto time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

std::int64_t milliseconds_between(auto begin, auto end) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(end - begin).count();
}

// torchelastic's name of it, for what it has as well.
void name_as_torchelastic(Event& event, std::string_view source, std::string_view state) {
  event.name = "torchelastic.worker.status." + std::string(state);
  event.source = source;
  event.state = state;
}

std::string what_drun_does(SignalMeaning meaning) {
  switch (meaning) {
    case SignalMeaning::Forward:
      return "forwards it to the workers";
    case SignalMeaning::Suspend:
      return "sleeps, and the workers with it";
    case SignalMeaning::Stacks:
      return "shows where the workers are";
    case SignalMeaning::Resize:
    case SignalMeaning::Stop:
      break;
  }
  return "stops";
}

}  // namespace

EventReporter::EventReporter(asio::io_context& io, const Options& options, const std::string& host,
                             Clock::time_point begun)
    : options_(options), remembers_(has_status_page(options)), begun_(begun) {
  if (options.events.target) log_.emplace(io, sink_of(options, host));
  if (!options.events.hooks.empty()) hooks_.emplace(io, options.events.hooks);
  place_.run_id = options.run_id;
  place_.hostname = host;
  place_.agent_pid = ::getpid();
  place_.role = options.role;
  place_.rdzv_backend = name_of(options.backend);
}

void EventReporter::tell(Event event, bool leads) {
  event.time_ns = nanoseconds(std::chrono::system_clock::now());
  event.monotonic_ns = nanoseconds(Clock::now());
  event.timestamp = event.time_ns / 1'000'000;
  if (remembers_) memory_.add(event);
  if (hooks_) hooks_->tell(event, leads);
  if (log_) log_->tell(std::move(event));
}

void EventReporter::tell(Kind kind, const std::string& reason) {
  if (!on()) return;
  Event event = place_;
  event.kind = kind;
  event.reason = reason;
  tell(std::move(event));
}

std::int64_t EventReporter::run_time() const {
  return milliseconds_between(begun_, Clock::now()) / 1'000;
}

void EventReporter::begin() {
  if (!on()) return;
  Event event = place_;
  event.kind = Kind::AgentStarted;
  event.version = DRUN_VERSION_STRING;
  event.endpoint = endpoint_of(options_);
  event.nnodes = nodes_of(options_);
  event.local_world_size = options_.nproc_per_node;
  event.max_restarts = options_.max_restarts;
  tell(std::move(event));
}

void EventReporter::joined(const NodeIdentity& node) {
  place_.node = node.ticket;
  hosting_ = node.hosting;
  store_is_there();
}

void EventReporter::store_is_there() {
  if (!on()) return;
  store_lost_ = false;
  Event event = place_;
  event.kind = hosting_ ? Kind::StoreHosted : Kind::StoreFound;
  event.endpoint = store_.empty() ? endpoint_of(options_) : store_;
  tell(std::move(event));
}

void EventReporter::on_link(const rendezvous::KeyValueEvent& event) {
  const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
  if (link == nullptr || !on()) return;
  switch (link->link) {
    case rendezvous::Link::Up:
    case rendezvous::Link::NewSession:
      if (link->generation > 0) {
        hosting_ = link->hosting;
        store_ = link->store;
      }
      if (store_lost_) store_is_there();
      break;
    case rendezvous::Link::Down:
    case rendezvous::Link::Failed:
      if (!std::exchange(store_lost_, true)) tell(Kind::StoreLost, link->detail);
      break;
    case rendezvous::Link::Closed:
      break;
  }
}

void EventReporter::tell(const rendezvous::News& news) {
  using What = rendezvous::News::What;
  if (!on()) return;
  Event event = place_;
  event.peer = news.ticket;
  event.peer_host = news.host;
  event.reason = news.reason;
  switch (news.what) {
    case What::Leads:
      event.kind = Kind::LeaderElected;
      break;
    case What::Joined:
      event.kind = Kind::NodeJoined;
      break;
    case What::Gone:
      event.kind = Kind::NodeGone;
      break;
    case What::Refused:
      event.kind = Kind::NodeRefused;
      break;
    case What::Hung:
      event.kind = Kind::Hang;
      event.global_rank = event.local_rank = -1;
      break;
    case What::Failed:
      event.kind = Kind::Failure;
      event.global_rank = news.failure->rank;
      event.local_rank = news.failure->local_rank;
      event.pid = news.failure->pid;
      event.exit_code = news.failure->signal != 0 ? 0 : news.failure->exit_code;
      event.signal = news.failure->signal;
      event.raw_error = news.failure->cause;
      break;
    case What::Restarted:
      event.kind = Kind::Restart;
      event.agent_restarts = news.restarts;
      event.max_restarts = options_.max_restarts;
      break;
  }
  tell(std::move(event));
}

void EventReporter::round_begins(const rendezvous::Assignment& place) {
  if (!on()) return;
  in_round_ = true;
  round_stops_ = false;
  round_begun_ = Clock::now();
  place_.round = place.round;
  place_.agent_restarts = place.restart_count;
  place_.group_rank = place.group_rank;
  Event event = place_;
  event.kind = Kind::RoundBegun;
  event.group_world_size = place.group_world_size;
  event.first_rank = place.first_rank;
  event.local_world_size = options_.nproc_per_node;
  event.world_size = place.world_size;
  event.master_endpoint = to_string(Endpoint{place.master_address, place.master_port});
  tell(std::move(event));
}

void EventReporter::round_stops(const rendezvous::StopAction& stop) {
  round_stops(stop.reason, stop.time_limit ? "time-limit"
                           : stop.failure  ? "failure"
                           : stop.resize   ? "resize"
                                           : "");
}

void EventReporter::round_stops(const std::string& reason, const std::string& cause) {
  if (!in_round_ || reason.empty() || std::exchange(round_stops_, true)) return;
  if (!on()) return;
  Event event = place_;
  event.kind = Kind::RoundStopping;
  event.reason = reason;
  event.cause = cause;
  tell(std::move(event));
}

void EventReporter::on_workers(const WorkerNews& news) {
  if (!on() || !in_round_) return;
  Event event = place_;
  event.duration_ms = milliseconds_between(round_begun_, Clock::now());
  if (news.group.started) {
    event.kind = Kind::WorkersRunning;
    tell(event);
  }
  // Its workers are being stopped before the others hear of it.
  if (news.group.failure) round_stops(rendezvous::failure_text(*news.group.failure), "failure");
  if (!news.left_behind.empty()) warned(news.left_behind);
  if (!news.group.stopped && !news.swept && news.guardian_ended.empty()) return;
  in_round_ = false;
  event.kind = Kind::RoundEnded;
  tell(std::move(event));
}

void EventReporter::on_started(const rendezvous::Assignment& place, const Worker& worker) {
  Event event = place_;
  event.kind = Kind::WorkerStarted;
  event.global_rank = place.first_rank + worker.local_rank;
  event.local_rank = worker.local_rank;
  event.pid = worker.pid;
  tell(std::move(event));
}

void EventReporter::on_ended(const rendezvous::Assignment& place, const Worker& worker,
                             bool stopping) {
  Event event = place_;
  event.kind = Kind::WorkerExited;
  event.global_rank = place.first_rank + worker.local_rank;
  event.local_rank = worker.local_rank;
  event.pid = worker.pid;
  event.signal = worker.end.status.signal;
  event.exit_code = event.signal != 0 ? 0 : worker.end.status.code;
  const bool success = worker.end.success();
  name_as_torchelastic(event, "WORKER", success ? "SUCCEEDED" : stopping ? "TERMINATED" : "FAILED");
  if (!success) event.raw_error = worker.cause;
  if (worker.pid != 0) event.duration_ms = milliseconds_between(worker.started, worker.ended);
  event.cpu_ms = worker.usage.cpu_ms;
  event.peak_kib = worker.usage.peak_kib;
  event.read_kib = worker.usage.read_kib;
  event.written_kib = worker.usage.written_kib;
  event.switches = worker.usage.switches;
  const GpuUse gpus = gpus_ != nullptr ? gpus_->of(place.round, worker.pid) : GpuUse();
  event.gpu_peak_kib = gpus.peak_kib.value_or(-1);
  event.gpu_percent = gpus.percent.value_or(-1);
  tell(std::move(event));
}

void EventReporter::on_signal(int signal, SignalMeaning meaning) {
  if (!on() || meaning == SignalMeaning::Resize) return;
  Event event = place_;
  event.kind = Kind::Signal;
  event.signal = signal;
  event.reason = process::signal_name(signal) + ": drun " + what_drun_does(meaning);
  tell(std::move(event));
}

void EventReporter::at_limit(const std::string& limit) {
  tell(Kind::Limit, limit);
}

void EventReporter::on_hang(const rendezvous::Assignment& place, const HungRank& rank) {
  if (!on()) return;
  Event event = place_;
  event.kind = Kind::Hang;
  event.global_rank = place.first_rank + rank.local_rank;
  event.local_rank = rank.local_rank;
  event.pid = rank.pid;
  event.reason = rank.fault.cause;
  tell(std::move(event));
}

void EventReporter::warned(const std::string& text) {
  tell(Kind::Warning, text);
}

void EventReporter::job_ends(const rendezvous::Outcome& outcome, bool leads) {
  if (!on()) return;
  Event event = place_;
  event.kind = Kind::Outcome;
  event.exit_code = outcome.exit_code;
  event.raw_error = outcome.text;
  event.total_run_time = run_time();
  name_as_torchelastic(event, "AGENT", outcome.exit_code == 0 ? "SUCCEEDED" : "FAILED");
  tell(std::move(event), leads);
}

void EventReporter::finish(int exit_code, std::function<void()> over) {
  if (!on()) return over();
  Event event = place_;
  event.kind = Kind::AgentEnded;
  event.exit_code = exit_code;
  event.total_run_time = run_time();
  event.lost = log_ ? log_->lost() : 0;
  tell(std::move(event));
  const auto log_over = [this, over = std::move(over)] {
    if (!log_) return over();
    log_->finish(over);
  };
  if (!hooks_) return log_over();
  hooks_->finish(log_over);
}

void EventReporter::give_up() {
  if (hooks_) hooks_->give_up();
  if (log_) log_->give_up();
}

}  // namespace drun::launcher
