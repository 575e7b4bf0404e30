#include "launcher/agent/participant_driver.hpp"

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "base/deadline.hpp"
#include "base/exit_codes.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/excluded_hosts.hpp"
#include "launcher/backend/backend_settings.hpp"
#include "launcher/report/gathered_ranks.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "rendezvous/documents.hpp"

namespace drun::launcher {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kOwnRanks =
    "the program has started processes with Python's multiprocessing, and none of them has come to "
    "the workers' store; if they are ranks that wait for one another at a MASTER_PORT of their "
    "own, use --worker-store rank0, or start the program without drun";

}  // namespace

void ParticipantDriver::join(const NodeIdentity& node) {
  auto config = rendezvous_config(parts_.options, node, parts_.backend.time_left());
  if (const auto end = parts_.workers.job_end())
    config.ends_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(end->time_since_epoch()).count();
  participant_.emplace(std::move(config), Clock::now());
  // The store is in the process that has started these agents.
  if (parts_.options.local_node == 0 && parts_.options.max_nodes > 1 && !node.hosting)
    participant_->leave_last();
  lease_ = lease(parts_.options, node.hosting);
  if (!facts_.empty()) participant_->on_facts(facts_, Clock::now());
}

void ParticipantDriver::on_event(const rendezvous::KeyValueEvent& event, Time now) {
  if (!joined()) return;
  if (finished_) {
    if (const auto* renewed = std::get_if<rendezvous::Renewed>(&event)) renew_lease(renewed->sent);
    return;
  }
  participant_->on_key_value(event, now);
  if (participant_->between_rounds()) parts_.workers.end_round();
}

void ParticipantDriver::on_workers(WorkerNews news, Time now) {
  const int round = parts_.workers.group().round();
  GroupNews& group = news.group;
  if (group.started && parts_.backend.awaits_client()) own_ranks_.begin(now);
  if (group.stopped) own_ranks_.end();
  if (!news.guardian_ended.empty() && !joined())
    return finish(parts_.backend.failure(news.guardian_ended));
  if (!joined()) return;
  if (news.lease_over) participant_->on_lease_over(now);
  if (group.started) participant_->on_workers_started(round, now);
  if (group.succeeded) participant_->on_workers_succeeded(round, now);
  if (group.failing && !group.failure) participant_->on_workers_failing(round, now);
  if (group.failure) participant_->on_workers_failed(round, std::move(*group.failure), now);
  if (group.stopped) participant_->on_workers_stopped(now, told_at_end());
  if (!news.guardian_ended.empty()) on_guardian_lost(news.guardian_ended, now);
}

// A job of one node has no other that could tell of it.
std::string ParticipantDriver::told_at_end() const {
  if (parts_.options.max_nodes == 1) return "";
  return packed_end(parts_.workers.group().ranks_at_end(), rendezvous::kMaxEnd);
}

void ParticipantDriver::on_workers_stalled(bool stalled, Time now) {
  if (!joined() || finished_) return;
  participant_->on_workers_stalled(parts_.workers.group().round(), stalled, now);
}

// The workers may run on: the store has answered what was sent then.
void ParticipantDriver::renew_lease(Time sent) {
  if (lease_) parts_.workers.renew_lease(sent, *lease_);
}

// The same as if the agent had died: a job that can change its size goes on without this node.
void ParticipantDriver::on_guardian_lost(const std::string& reason, Time now) {
  parts_.status.state(reason + "; its workers were killed");
  if (is_elastic(parts_.options)) return leave_job(reason, kDrunFailed, now);
  stop_job(reason, kDrunFailed, now);
}

void ParticipantDriver::on_stop_signal(const std::string& request, int signal, Time now) {
  const std::string reason = on_this_node(request);
  const int exit_code = exit_code_of_signal(signal);
  if (joined() && takes_node_out(signal, parts_.options)) return leave_job(reason, exit_code, now);
  stop_job(reason, exit_code, now);
}

void ParticipantDriver::refuse_job(const std::string& why, Time now) {
  stop_job(on_this_node(why), kDrunFailed, now);
}

bool ParticipantDriver::left_unannounced(rendezvous::End end) const {
  using enum rendezvous::End;
  return !joined() || left_job_ || end == Refused || end == StoreLost;
}

// As the other nodes read it.
std::string ParticipantDriver::on_this_node(const std::string& text) const {
  return parts_.options.max_nodes == 1 ? text : text + " on " + parts_.host_name;
}

void ParticipantDriver::stop_job(const std::string& reason, int exit_code, Time now) {
  if (joined()) return participant_->on_stop_requested(reason, exit_code, now);
  finish(ended_early(rendezvous::End::Stopped, exit_code, reason));
}

void ParticipantDriver::leave_job(const std::string& reason, int exit_code, Time now) {
  left_job_ = true;
  participant_->on_leave_requested(reason, exit_code, now);
}

void ParticipantDriver::finish(rendezvous::Outcome outcome) {
  finished_ = true;
  finish_(std::move(outcome));
}

void ParticipantDriver::on_time(Time now) {
  if (const auto limit = parts_.workers.expired(now)) {
    parts_.status.line().clear();
    parts_.status.at_limit(parts_.workers.group().describe(now));
    parts_.events.at_limit(*limit);
    stop_job(*limit, kTimeLimit, now);
  }
  if (own_ranks_.on_time(now, parts_.backend.awaits_client())) log::warning("{}", kOwnRanks);
  if (joined()) participant_->on_time(now);
}

void ParticipantDriver::set_facts(std::string sheet, Time now) {
  facts_ = std::move(sheet);
  if (joined() && !finished_) participant_->on_facts(facts_, now);
}

std::optional<ParticipantDriver::Time> ParticipantDriver::next_deadline() const {
  EarliestDeadline due;
  due.include(own_ranks_.next_deadline());
  if (joined()) due.include(participant_->next_deadline());
  return due.time();
}

void ParticipantDriver::perform_actions() {
  if (!participant_) return;
  for (auto actions = participant_->take_actions(); !actions.empty();
       actions = participant_->take_actions()) {
    for (auto& action : actions) {
      std::visit([this](auto& each) { perform(each); }, action);
      if (finished_) return;
    }
  }
}

void ParticipantDriver::perform(rendezvous::WatchAction& action) {
  parts_.backend.key_value().watch(action.watch, std::move(action.key), action.prefix);
}

void ParticipantDriver::perform(const rendezvous::UnwatchAction& action) {
  parts_.backend.key_value().unwatch(action.watch);
}

void ParticipantDriver::perform(rendezvous::CommitAction& action) {
  parts_.backend.key_value().commit(action.request, std::move(action.transaction));
}

void ParticipantDriver::perform(const rendezvous::VoteAction& action) {
  parts_.backend.vote(action.vote, action.successors);
}

void ParticipantDriver::perform(const rendezvous::PrepareWorkerStoreAction& action) {
  const auto port = parts_.backend.prepare_worker_store();
  if (!port) return stop_job(port.error().what(), kDrunFailed, Clock::now());
  participant_->on_worker_store_ready(action.assignment.round, *port, Clock::now());
}

void ParticipantDriver::perform(const rendezvous::StartAction& action) {
  rendezvous::Assignment place = action.assignment;
  auto here = parts_.backend.relay_to({place.master_address, place.master_port});
  if (!here) return stop_job(here.error().what(), kDrunFailed, Clock::now());
  parts_.status.workers_start();
  parts_.events.round_begins(place);
  place.store_here = std::move(*here);
  parts_.workers.start(place);
}

void ParticipantDriver::perform(const rendezvous::RenewLeaseAction& action) {
  renew_lease(action.sent);
}

void ParticipantDriver::perform(const rendezvous::StopAction& action) {
  const WorkerGroup& group = parts_.workers.group();
  if (action.time_limit) parts_.status.at_limit(group.describe(Clock::now()));
  // Workers that are stopped at once have lost the store, which is reported when they are gone.
  if (!group.idle() && !action.immediately && !action.reason.empty())
    parts_.status.stopping(action.reason);
  parts_.events.round_stops(action);
  const auto stop = [this, action] { parts_.workers.stop(action); };
  if (!parts_.hold_stop || !parts_.hold_stop(action, stop)) stop();
}

void ParticipantDriver::perform(const rendezvous::RoundStopsAction& action) {
  parts_.status.line().clear();
  parts_.status.stopping(action.reason);
}

void ParticipantDriver::perform(const rendezvous::HangAction& /*action*/) {
  hang_();
}

void ParticipantDriver::perform(rendezvous::FinishAction& action) {
  for (const std::string& end : action.ends)
    if (auto ranks = unpacked_end(end)) others_at_end_.push_back(std::move(*ranks));
  finish(std::move(action.outcome));
}

void ParticipantDriver::perform(const rendezvous::LogAction& action) {
  parts_.status.line().clear();
  if (action.warning) {
    log::warning("{}", action.text);
    parts_.events.warned(action.text);
  } else {
    parts_.status.state(action.text);
  }
}

void ParticipantDriver::perform(const rendezvous::NewsAction& action) {
  parts_.events.tell(action.news);
}

void ParticipantDriver::perform(const rendezvous::ProgressAction& action) {
  parts_.status.waiting(action.text, Clock::now(), action.spare);
}

void ParticipantDriver::perform(const rendezvous::SetAsideAction& action) {
  const std::string text =
      printable(action.host) +
      (action.cleared ? " was set aside for what another node has done at its place, too: it is "
                        "the program, not the node"
                      : " is set aside, a spare takes its place: " + action.why);
  parts_.status.warn(text);
  parts_.events.warned(text);
  const Options& options = parts_.options;
  // Other agents of this job may be on the same host, and are not to blame.
  if (parts_.files == nullptr || options.exclude_file.empty() || options.local_node >= 0 ||
      options.excluded_hosts.contains(action.host))
    return;
  parts_.files->run(
      kFilesLimit,
      [file = options.exclude_file, action] {
        if (action.cleared)
          remove_excluded_host(file, action.host, action.why);
        else
          add_excluded_host(file, action.host, action.why);
      },
      [](const std::optional<Error>& failed) {
        if (failed) log::warning("--exclude-file: {}", failed->what());
      });
}

void ParticipantDriver::perform(rendezvous::CompareFactsAction& action) {
  to_compare_ = std::make_shared<rendezvous::CompareFactsAction>(std::move(action));
  compare_facts();
}

// In a thread: with thousands of nodes it takes longer than this loop may be held up.
void ParticipantDriver::compare_facts() {
  if (parts_.files == nullptr || comparing_ || !to_compare_) return;
  comparing_ = true;
  auto lines = std::make_shared<std::vector<std::string>>();
  parts_.files->run(
      kFilesLimit,
      [report = facts_report_, nodes = std::move(to_compare_), lines] {
        *lines = report->news(*nodes);
      },
      [this, lines](const std::optional<Error>& failed) {
        comparing_ = false;
        if (failed) log::warning("the nodes' facts were not compared: {}", failed->what());
        for (std::size_t i = 0; !failed && i < lines->size(); ++i) {
          parts_.status.warn((*lines)[i]);
          parts_.events.warned((*lines)[i]);
        }
        compare_facts();
      });
}

}  // namespace drun::launcher
