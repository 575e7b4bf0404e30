#include "launcher/leaving/agent_shutdown.hpp"

#include <chrono>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/report/outcome_report.hpp"
#include "rendezvous/keys.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kDrainLimit{1'000};

FlushTarget flush_target(Output& output) {
  return {[&output](milliseconds limit) { (void)output.drain(limit); },
          [&output] { return output.flush_progress(); }, [&output] { output.give_up(); }};
}

}  // namespace

AgentShutdown::AgentShutdown(const Parts& parts, Calls calls)
    : parts_(parts),
      calls_(std::move(calls)),
      report_file_(parts.io, parts.options.report_file),
      files_(parts.io),
      flush_(parts.io, flush_target(parts.output)) {}

void AgentShutdown::begin() {
  report_file_.begin([this](const std::string& why) {
    if (!leaving()) calls_.refuse_job("--report: " + why);
  });
}

void AgentShutdown::on_outcome(rendezvous::Outcome outcome) {
  if (leaving()) return;
  outcome_ = std::move(outcome);
  parts_.status.line().show("", Clock::now());
  const Owed most = owed();
  parts_.backend.leave(!knows_end());
  perform(fsm_.on_outcome(outcome_.exit_code, most));
}

// Whether the job ended as this agent did, and not without it.
bool AgentShutdown::knows_end() const {
  return parts_.options.max_nodes == 1 || !left_unannounced();
}

// The most that this agent may still owe the others.
Owed AgentShutdown::owed() const {
  if (!parts_.backend.is_up()) return Owed::None;
  return parts_.backend.hosts_for_others() ? Owed::ServeOthers : Owed::Goodbye;
}

void AgentShutdown::on_workers(const WorkerNews& news, Time now) {
  parts_.status.left_behind(news.left_behind);
  if (news.grace_begins && requests_.any()) show_countdown(now, true);
  if (news.grace_over) parts_.status.line().show("", now);
  if (news.swept) perform(fsm_.on_swept());
  if (!news.guardian_ended.empty()) perform(fsm_.on_guardian_lost());
}

void AgentShutdown::show_countdown(Time now, bool at_once) {
  if (const auto countdown = parts_.workers.countdown(now, requests_.any()))
    parts_.status.line().count_down(*countdown, now, at_once);
}

void AgentShutdown::on_stop_signal(int signal) {
  if (const auto level = requests_.count(signal, Clock::now()))
    perform(fsm_.on_stop(*level, signal));
}

void AgentShutdown::on_event(const rendezvous::KeyValueEvent& event) {
  const auto* link = std::get_if<rendezvous::LinkEvent>(&event);
  if (link != nullptr && link->link == rendezvous::Link::Closed) perform(fsm_.on_link_closed());
  if (link != nullptr && link->link == rendezvous::Link::Failed) perform(fsm_.on_link_failed());
  if (fsm_.phase() == ShutdownFsm::Phase::ServingOthers) linger(event);
}

// Serves the store until no other job needs it. The last look is one step with the end of the
// service, so that nobody comes in between; if somebody came before it, the watch tells.
void AgentShutdown::linger(const rendezvous::KeyValueEvent& event) {
  const auto needed = [this](std::string_view key) { return linger_->needs(key); };
  switch (linger_->on_event(event)) {
    case StoreLinger::Step::None:
      break;
    case StoreLinger::Step::Say:
      log::warning("{}", linger_->text());
      break;
    case StoreLinger::Step::StopStore:
      if (parts_.backend.stop_hosting_unless(needed)) perform(fsm_.on_store_unneeded());
  }
}

void AgentShutdown::perform(const ShutdownFsm::Steps& steps) {
  for (const auto step : steps)
    perform(step);
}

void AgentShutdown::perform(ShutdownFsm::Step step) {
  using enum ShutdownFsm::Step;
  switch (step) {
    case StopJob:
      parts_.workers.stop_with(fsm_.signal());
      return calls_.stop_job(request(), fsm_.signal());
    case KillWorkers:
      return kill_workers();
    case GiveUpWorkers:
      return parts_.workers.give_up();
    case Sweep:
      return parts_.workers.sweep();
    case Report:
      return report();
    case GiveUpReport:
      files_.give_up(request());
      if (parts_.summary != nullptr) parts_.summary->give_up();
      return;
    case ServeOthers:
      return serve_others();
    case SayGoodbye:
      return parts_.backend.key_value().close();
    case Leave:
      return leave();
    case GiveUpReader:
      parts_.events.give_up();
      return flush_.give_up(request());
    case End:
      report_file_.cancel();
      return calls_.gone();
  }
}

void AgentShutdown::kill_workers() {
  parts_.status.warn(request() + " again: killing the workers");
  parts_.workers.kill();
}

void AgentShutdown::report() {
  Output& output = parts_.output;
  output.drain(kDrainLimit);
  if (output.lost_output()) fsm_.on_output_lost();
  outcome_.exit_code = fsm_.exit_code();
  // How the job ends, a node that leaves it does not know.
  if (!outcome_.leaves) parts_.events.job_ends(outcome_, calls_.leads && calls_.leads());
  if (calls_.tell_end) calls_.tell_end(outcome_);
  const Options& options = parts_.options;
  NodeEnd node{parts_.status.states_at_limit(), parts_.workers.group().ranks_at_end()};
  if (calls_.left_files) node.files = calls_.left_files();
  if (calls_.others_at_end) node.others = calls_.others_at_end();
  if (options.tells_its_end)
    report_outcome(options.output.tail_lines, outcome_, node, output.lost_logs(),
                   options.output.own_words.begin.empty() ? Reader::User : Reader::Starter,
                   [this](std::string text) { parts_.status.say(std::move(text)); });
  files_.write(report_file_.end(outcome_, node, knows_end()),
               [](const std::string& why) { log::error("--report: {}", why); });
  if (outcome_.failure)
    files_.write(forwarded_error_file(options.inherited, *outcome_.failure,
                                      parts_.workers.group().error_file(*outcome_.failure)),
                 [](const std::string& why) { log::warning("TORCHELASTIC_ERROR_FILE: {}", why); });
  if (parts_.metrics_file != nullptr)
    files_.write(parts_.metrics_file->last(outcome_.leaves ? nullptr : &outcome_),
                 [this](const std::string& why) { parts_.metrics_file->tell(why); });
  files_.when_over([this] { summarize(); });
}

void AgentShutdown::summarize() {
  if (parts_.summary == nullptr || outcome_.leaves) return perform(fsm_.on_reported());
  parts_.summary->at_end([this](const std::vector<std::string>& lines) {
    for (const auto& line : lines)
      log::info("{}", line);
    perform(fsm_.on_reported());
  });
}

void AgentShutdown::serve_others() {
  linger_.emplace(parts_.options.run_id);
  parts_.backend.key_value().watch(StoreLinger::kWatch, std::string(rendezvous::kAllJobs), true);
}

// From here on only the readers of drun's events and output are waited for.
void AgentShutdown::leave() {
  parts_.workers.close();
  if (calls_.leaves_store) calls_.leaves_store();
  parts_.backend.release();  // the next job at the endpoint must not wait for our reader
  parts_.events.finish(fsm_.exit_code(), [this] {
    flush_.start(fsm_.exit_code(), requests_.any(), [this](bool lost) {
      perform(fsm_.on_flushed(lost));
      if (parts_.output.lost_output()) fsm_.on_output_lost();
    });
  });
}

// "received SIGTERM"
std::string AgentShutdown::request() const {
  return "received " + process::signal_name(fsm_.signal());
}

}  // namespace drun::launcher
