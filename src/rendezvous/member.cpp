#include "rendezvous/member.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {

MemberAgent::MemberAgent(const Config& config, const Keys& keys, Outbox& outbox, Time now)
    : config_(config),
      keys_(keys),
      outbox_(outbox),
      link_(config.keep_alive, now),
      lease_(config.keep_alive),
      vote_(config, keys, outbox),
      seen_(config.keep_alive),
      departure_(config, now),
      last_to_leave_(config.close_timeout, config.ticket, keys, outbox),
      waiting_since_(now),
      word_of_leader_(now) {
  document_.host = config.host;
  document_.address = config.address;
  document_.network = config.network;
  document_.worker_store_port = config.worker_store_port;
  document_.local_world_size = config.local_world_size;
  document_.role = config.role;
  document_.node_rank = config.node_rank;
  document_.node_rank_is_wish = config.node_rank_is_wish;
  document_.is_host = config.is_host;
  document_.successor_port = config.successor_port;
  document_.listed = config.listed;
  document_.ends_ms = config.ends_ms;
  document_.agreement = full_agreement(config);
}

void MemberAgent::note_time(Time now) {
  if (link_.note_time(now)) rewatch();
}

// We were suspended (SIGSTOP, a paused virtual machine). Messages that were queued meanwhile may be
// stale, so until a fresh snapshot arrives they may stop workers but must not start any.
void MemberAgent::rewatch() {
  round_.read_again(outbox_, keys_.round);
  assignment_.read_again(outbox_, keys_.assignment(config_.ticket));
}

void MemberAgent::on_link_up(const LinkEvent& event, Time now) {
  const bool new_session = event.link == Link::NewSession;
  if (new_session) lease_.on_new_session();
  // Too late: our session is gone and the others may have gone on without us. Staying down lets
  // trouble_outcome() end this agent. If the store has successors, it comes back as a newcomer
  // instead: its workers have ended with their lease, or end when it sees that the job went on.
  if (new_session && link_.lost_for_too_long(now)) {
    if (!may_come_back()) return;
    if (workers_.any()) lease_.on_over();  // the guardian's word of it may come later
  }
  if (event.generation > 0) document_.is_host = event.hosting;
  if (!round_.begun()) {
    round_.begin(outbox_, keys_.round);
    outcome_watch_ = outbox_.watch(keys_.outcome, false);
    assignment_.begin(outbox_, keys_.assignment(config_.ticket));
  }
  if (new_session) entry_.on_new_session();
  if (new_session) facts_due_ = !facts_.empty();
  if (new_session || !link_.up()) {
    // A resumed session is no proof that the store still has what it once confirmed: one that
    // comes back from a snapshot file is as it was when that was written.
    entry_.change();
    if (link_.was_up()) lease_.doubt();
  }
  link_.on_up(new_session, now);
  if (event.generation > 0 && config_.successors > 0) vote_.begin();
}

void MemberAgent::on_renewed(const Renewed& event) {
  lease_.on_alive(event.sent);
  vote_.on_renewed(event);
}

// The round and this node's place in it are in two documents: both must be current.
void MemberAgent::speak() {
  if (!round_.current() || !assignment_.current() || !round_.document) return;
  const auto& given = assignment_.document;
  const bool placed = given && given->go && given->assignment.round == round_.document->ran;
  vote_.speak(*round_.document,
              placed ? std::optional(given->assignment.group_rank) : std::nullopt);
  document_.latest = vote_.latest();
}

void MemberAgent::on_link_down(std::string detail, Milliseconds silent, Time now) {
  if (link_.up()) {
    round_.on_link_lost();
    assignment_.on_link_lost();
  }
  link_.on_down(std::move(detail), silent, now);
}

void MemberAgent::on_link_failed(std::string detail, Time now) {
  on_link_down(detail, {}, now);
  departure_.fail(std::move(detail));
}

void MemberAgent::take_round(const std::optional<std::string>& value) {
  const RoundDocument* shown = round_.document ? &*round_.document : nullptr;
  if (!value) {
    seen_.note(shown, nullptr, link_.last_touch());
    return round_.document.reset();
  }
  auto document = decode_round(*value);
  if (!document) return outbox_.log(document.error().what(), true);
  if (document->version != kProtocolVersion)
    return refuse("the job speaks rendezvous protocol " + std::to_string(document->version) +
                  ", this drun " + std::to_string(kProtocolVersion));
  seen_.note(shown, &*document, link_.last_touch());
  document_.seen = std::max(document_.seen, document->ran);
  if (document->ran != ran_) ran_before_ = std::exchange(ran_, document->ran);
  document_.restarts = std::max(document_.restarts, document->restart_count);
  document_.losses = std::max(document_.losses, document->losses);
  if (document->phase == Phase::Gathering || document->phase == Phase::Preparing)
    end_.clear();  // the job went on
  round_.document = std::move(*document);
}

void MemberAgent::take_assignment(const std::optional<std::string>& value) {
  if (!value) return assignment_.document.reset();
  auto document = decode_assignment(*value);
  if (!document) return outbox_.log(document.error().what(), true);
  if (!document->refused.empty()) return refuse(document->refused, document->unfit);
  if (document->go && document->assignment.round > last_place_)
    place_before_ = std::exchange(last_place_, document->assignment.round);
  assignment_.document = std::move(*document);
}

void MemberAgent::take_outcome(const std::optional<std::string>& value, bool snapshot) {
  if (!value) {
    joined_open_ |= snapshot;
    return;
  }
  auto outcome = decode_outcome(*value);
  if (!outcome) return outbox_.log(outcome.error().what(), true);
  if (joined_open_) {
    departure_.on_outcome(std::move(*outcome));
  } else {
    refuse("the job '" + config_.run_id + "' has ended before this node came" +
           (outcome->text.empty() ? "" : " (" + outcome->text + ")") +
           "; use another rendezvous id, or free this one at its store: drunctl delete-job " +
           config_.run_id);
  }
}

void MemberAgent::on_snapshot(const WatchSnapshot& snapshot) {
  last_to_leave_.on_snapshot(snapshot);
  const auto value = snapshot.entries.empty() ? std::nullopt : snapshot.entries.front().value;
  if (round_.is(snapshot.watch)) {
    round_.on_snapshot(outbox_, snapshot.watch);
    take_round(value);
  } else if (assignment_.is(snapshot.watch)) {
    assignment_.on_snapshot(outbox_, snapshot.watch);
    take_assignment(value);
  } else if (snapshot.watch == outcome_watch_) {
    take_outcome(value, true);
  } else {
    vote_.take_history(snapshot.watch, value);
  }
}

void MemberAgent::on_changes(const WatchChanges& changes, Time now) {
  last_to_leave_.on_changes(changes);
  for (const auto& [key, value] : changes.changes) {
    if (round_.is(changes.watch)) {
      take_round(value);
      word_of_leader_ = now;
    } else if (assignment_.is(changes.watch)) {
      take_assignment(value);
    } else if (changes.watch == outcome_watch_) {
      take_outcome(value, false);
    } else {
      vote_.take_history(changes.watch, value);
    }
  }
}

void MemberAgent::on_commit(const CommitResult& result, Time now) {
  const Rejections& rejections = entry_.rejections();
  switch (entry_.on_commit(result, now)) {
    case OwnEntry::Answer::Written:
      lease_.on_entry_written();
      break;
    case OwnEntry::Answer::Rejected:
      if (entry_.first_rejection()) outbox_.log(rejections.warning(), true);
      if (rejections.over(now)) give_up(rejections.text());
      break;
    case OwnEntry::Answer::Refused:
      if (entry_.refused_too_often()) departure_.fail("the store refuses what drun writes");
      break;
    case OwnEntry::Answer::None:
    case OwnEntry::Answer::Lost:
      break;
  }
}

void MemberAgent::on_worker_store_ready(int round, std::uint16_t port) {
  if (round != preparing_) return;
  document_.prepared = round;
  document_.prepared_worker_store_port = port;
  entry_.change();
}

void MemberAgent::on_workers_succeeded(int round) {
  if (!workers_.on_succeeded(round)) return;
  document_.succeeded = round;
  entry_.change();
}

// A node's report takes a moment, in which ranks of others may fail for what has failed here: who
// was the first, the order of these words tells.
void MemberAgent::on_workers_failing(int round) {
  if (lease_.over() || !workers_.run(round)) return;
  document_.failing = round;
  entry_.change();
}

void MemberAgent::on_workers_failed(int round, FailureSummary failure) {
  if (lease_.over()) return;  // they were killed: none has failed
  // Another node's failure may have come first.
  const bool stopped = workers_.stop_asked() && workers_.round() == round && worker_failed();
  if (!workers_.on_failed(round) && !stopped) return;
  document_.failed = round;
  document_.failure = std::move(failure);
  entry_.change();
}

void MemberAgent::on_workers_stopped(std::string end) {
  const int round = workers_.on_stopped();
  if (round == 0) return;
  end_ = end.size() <= kMaxEnd ? std::move(end) : "";
  end_round_ = round;
  note_left(round);
  lease_.on_workers_gone();
}

void MemberAgent::on_workers_stalled(int round, bool stalled) {
  const int said = stalled && workers_.run(round) ? round : 0;
  if (said != document_.stalled) entry_.change();
  document_.stalled = said;
}

void MemberAgent::note_left(int round) {
  if (round <= document_.left) return;
  document_.left = round;
  entry_.change();
}

void MemberAgent::on_stop_requested(std::string reason, int exit_code, Time now) {
  departure_.ask_to_stop({std::move(reason), exit_code}, now);
}

// The store of a host ends with it, and the job with that, if no other succeeds it.
void MemberAgent::on_leave_requested(std::string reason, int exit_code, Time now) {
  if (carries_job()) return on_stop_requested(std::move(reason), exit_code, now);
  departure_.ask_to_leave({std::move(reason), exit_code}, now);
}

void MemberAgent::on_facts(std::string sheet) {
  facts_ = std::move(sheet);
  facts_due_ = !facts_.empty();
}

bool MemberAgent::spare() const {
  return round_.document && round_.document->phase == Phase::Running && !workers_.any() &&
         last_place_ < round_.document->number;
}

void MemberAgent::advance(Time now) {
  if (finished()) return;
  find_ending(now);
  speak();
  renew_lease();
  follow(now);
  leave(now);
  publish_facts();
  publish(now);
}

// Others wait for this node's workers only if the store shows them that it is there.
void MemberAgent::renew_lease() {
  if (const auto from = lease_.renew(workers_.any())) outbox_.push(RenewLeaseAction{*from});
}

// A failure in a few words, if the store did not take more. A newcomer that has waited for what it
// knows of its machine knows of a round that it has no part in: it is to be told of as any other.
MemberDocument MemberAgent::document() const {
  MemberDocument document = document_;
  if (!entry_.was_written() && document.latest.rank < 0) document.latest = {};
  if (document.failure && rejected())
    document.failure = without_details(std::move(*document.failure));
  return document;
}

// Before the first word of this agent if they are known by then. Nobody can do anything about a
// store that does not take them.
void MemberAgent::publish_facts() {
  if (!facts_due_ || !up() || finished() || departure_.refused() || departure_.job_over()) return;
  facts_due_ = false;
  Transaction transaction;
  transaction.writes.push_back({keys_.facts_of(config_.ticket), facts_, true});
  outbox_.commit(std::move(transaction));
}

void MemberAgent::publish(Time now) {
  const bool holds_unknown = lease_.in_doubt() && workers_.any();
  const bool has_part = (!departure_.job_over() && !departure_.refused()) || holds_unknown ||
                        (end_until_ && now < *end_until_);
  if (!entry_.due(now) || !up() || finished() || !has_part) return;
  // The leader must know what this machine is like before it counts on it.
  if (config_.unfit && facts_.empty()) return;
  // Who says that it has workers of a round that may be over lets the others wait for more of them.
  if (holds_unknown && lease_.over() && may_come_back()) return;
  Transaction transaction;
  transaction.writes.push_back({keys_.member(config_.ticket), encode(document()), true});
  entry_.on_sent(outbox_.commit(std::move(transaction)));
}

std::optional<Time> MemberAgent::next_deadline() const {
  if (finished()) return std::nullopt;
  EarliestDeadline next;
  const bool behind = is_behind(round_.document, workers_.round());
  if (up() && round_.current() && workers_.any() && behind && !workers_.stop_asked())
    next.include(link_.up_since() + config_.keep_alive * 2);
  next.include(link_.next_touch());
  next.include(end_until_);
  next.include(last_to_leave_.limit());
  if (last_to_leave_.limit()) next.include(others_come_until_);
  if (!ending() && up()) next.include(entry_.retry_at());
  next.include(departure_.next_deadline(surroundings()));
  if (!departure_.staying()) return next.time();
  if (link_.state() == StoreLink::State::Lost)
    next.include(link_.lost_since() + patience_without_store());
  if (!link_.was_up()) next.include(waiting_since_, config_.join_timeout);
  if (up() && waiting()) next.include(patience_ends());
  return next.time();
}

}  // namespace drun::rendezvous
