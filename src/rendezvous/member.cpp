#include "rendezvous/member.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kRetry{200};
constexpr int kMaxRefusedWrites = 5;

// The store does not know yet, or not any more, that this round runs.
bool is_behind(const std::optional<RoundDocument>& store, int round) {
  if (!store || store->number < round) return true;
  const bool begins = store->phase == Phase::Gathering || store->phase == Phase::Preparing;
  return store->number == round && begins && store->ran < round;
}

}  // namespace

MemberAgent::MemberAgent(const Config& config, const Keys& keys, Outbox& outbox, Time now)
    : config_(config),
      keys_(keys),
      outbox_(outbox),
      up_since_(now),
      out_of_touch_since_(now),
      last_touch_(now),
      resumed_at_(now),
      stop_since_(now),
      leave_since_(now),
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
  if (up() && now - last_touch_ > config_.keep_alive) {
    paused_at_ = last_touch_;
    resumed_at_ = now;
  }
  if (up() && now - last_touch_ > config_.keep_alive / 2) rewatch();
  last_touch_ = now;
}

// We were suspended (SIGSTOP, a paused virtual machine): next_deadline() never lets this much time
// pass. Messages that were queued meanwhile may be stale, so until a fresh snapshot arrives they
// may stop workers but must not start any.
void MemberAgent::rewatch() {
  replace_watch(round_, keys_.round);
  replace_watch(assignment_, keys_.assignment(config_.ticket));
}

template <typename T>
void MemberAgent::replace_watch(Watched<T>& watched, const std::string& key) {
  if (watched.stale == 0) {
    watched.stale = watched.watch;
  } else {
    outbox_.unwatch(watched.watch);
  }
  watched.watch = outbox_.watch(key, false);
  watched.current = false;
}

template <typename T>
void MemberAgent::make_current(Watched<T>& watched) {
  watched.current = true;
  if (watched.stale != 0) outbox_.unwatch(std::exchange(watched.stale, 0));
}

void MemberAgent::on_link_up(const LinkEvent& event, Time now) {
  const bool new_session = event.link == Link::NewSession;
  if (new_session) alive_.reset();
  // Too late: our session is gone and the others may have gone on without us. Staying down lets
  // trouble_outcome() end this agent. If the store has successors, it comes back as a newcomer
  // instead: its workers have ended with their lease, or end when it sees that the job went on.
  if (new_session && touch_ == Touch::Lost && now - out_of_touch_since_ > config_.keep_alive) {
    if (!may_come_back()) return;
    lease_over_ = held_ != 0;  // the guardian's word of it may come later
  }
  if (event.generation > 0) document_.is_host = event.hosting;
  if (round_.watch == 0) {
    round_.watch = outbox_.watch(keys_.round, false);
    outcome_watch_ = outbox_.watch(keys_.outcome, false);
    assignment_.watch = outbox_.watch(keys_.assignment(config_.ticket), false);
  }
  // What the old session wrote is gone, so an answer to it means nothing.
  if (new_session) request_ = 0;
  if (new_session) facts_written_ = facts_.empty();
  if (new_session || !up()) {
    // A resumed session is no proof that the store still has what it once confirmed: one that
    // comes back from a snapshot file is as it was when that was written.
    dirty_ = true;
    unknown_ |= was_up();
    up_since_ = now;
  }
  touch_ = Touch::Up;
  if (event.generation > 0 && config_.successors > 0 && !vote_) {
    vote_.emplace().job = keys_.prefix;
    outbox_.push(VoteAction{*vote_, successors_});
  }
}

// The store names its last settled round, of which a majority knows. If this node's place is in
// that round, whoever has a majority knows of this node.
void MemberAgent::on_renewed(const Renewed& event) {
  alive_ = std::max(alive_.value_or(event.sent), event.sent);
  settled_era_ = event.settled_era;
  const Place& latest = document_.latest;
  if (latest.era != event.settled_era || latest.round != event.settled_round) return;
  firm_ = true;
}

// Votes as a node of the last round. The round and this node's place in it are in two documents:
// both must be current.
void MemberAgent::speak() {
  if (!vote_ || !round_.current || !assignment_.current || !round_.document) return;
  const RoundDocument& round = *round_.document;
  Place place = round.latest;
  const auto& given = assignment_.document;
  if (given && given->go && given->assignment.round == round.ran)
    place.rank = given->assignment.group_rank;
  Place& latest = document_.latest;
  if (place.exists() && latest.before(place)) {
    firm_ = firm_ && latest.rank >= 0 && latest.same_round(round.before);
    latest = place;
  } else if (place.exists() && latest.same_round(place) && latest.rank < 0) {
    latest.rank = place.rank;  // its assignment came later
  }
  auto successors = round.latest.exists() ? round.successors : successors_;
  for (Successor& successor : successors)
    successor.self =
        successor.address == config_.address && successor.port == config_.successor_port;
  if (latest == vote_->latest && successors == successors_) return;
  vote_->latest = latest;
  successors_ = std::move(successors);
  outbox_.push(VoteAction{*vote_, successors_});
  keep_history();
}

// A few of all nodes do: at a large job it would cost the store much to tell it to each.
void MemberAgent::keep_history() {
  const bool may_succeed = std::any_of(successors_.begin(), successors_.end(),
                                       [](const Successor& each) { return each.self; });
  if (may_succeed == (history_watch_ != 0)) return;
  if (may_succeed) {
    history_watch_ = outbox_.watch(keys_.history, false);
  } else {
    outbox_.unwatch(std::exchange(history_watch_, 0));
  }
}

// A store that has no history yet may follow one that had: what is known of it stays.
void MemberAgent::take_history(const std::optional<std::string>& value) {
  if (!value) return;
  if (auto history = decode_history(*value)) history_ = std::move(*history);
}

void MemberAgent::on_link_down(std::string detail, Milliseconds silent, Time now) {
  detail_ = std::move(detail);
  if (!up()) return;
  touch_ = Touch::Lost;
  round_.current = false;
  assignment_.current = false;
  // If this process was suspended, the others have heard nothing from it since then: the keep-alive
  // limit counts from there, not from when it woke up and noticed.
  const bool paused = paused_at_ && now - resumed_at_ < config_.keep_alive;
  out_of_touch_since_ = now - silent;
  if (paused) out_of_touch_since_ = std::min(out_of_touch_since_, *paused_at_);
}

void MemberAgent::on_link_failed(std::string detail, Time now) {
  on_link_down(detail, {}, now);
  failed_ = std::move(detail);
}

// In a store that was emptied a round may begin without knowing of another, and this agent
// remembers only the one with the higher number, or the later one. If the store loses the other,
// nodes that are out of touch may have workers of it.
void MemberAgent::note_others(const RoundDocument* next) {
  const auto& shown = round_.document;
  const bool lost = shown && is_alive(shown->phase) && shown->number < seen_.number &&
                    (next == nullptr || next->number != shown->number);
  const bool replaced =
      next != nullptr && is_alive(seen_.phase) && next->number == seen_.number &&
      (is_another(seen_, *next) || (!is_alive(next->phase) && next->ran < next->number));
  if (lost || replaced) others_until_ = last_touch_ + config_.keep_alive;
}

void MemberAgent::take_round(const std::optional<std::string>& value) {
  if (!value) {
    note_others(nullptr);
    return round_.document.reset();
  }
  auto document = decode_round(*value);
  if (!document) return outbox_.log(document.error().what(), true);
  if (document->version != kProtocolVersion)
    return refuse("the job speaks rendezvous protocol " + std::to_string(document->version) +
                  ", this drun " + std::to_string(kProtocolVersion));
  note_others(&*document);
  if (document->number >= seen_.number) seen_ = *document;
  document_.seen = std::max(document_.seen, document->ran);
  if (document->ran != ran_) ran_before_ = std::exchange(ran_, document->ran);
  document_.restarts = std::max(document_.restarts, document->restart_count);
  document_.losses = std::max(document_.losses, document->losses);
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
    outcome_ = std::move(*outcome);
  } else {
    refuse("the job '" + config_.run_id + "' has ended before this node came" +
           (outcome->text.empty() ? "" : " (" + outcome->text + ")") +
           "; use another rendezvous id, or free this one at its store: drunctl delete-job " +
           config_.run_id);
  }
}

void MemberAgent::on_snapshot(const WatchSnapshot& snapshot) {
  if (closing_watch_ != 0 && snapshot.watch == closing_watch_) {
    others_.emplace();
    for (const auto& entry : snapshot.entries)
      others_->insert(entry.key);
    others_->erase(keys_.member(config_.ticket));
    return;
  }
  const auto value = snapshot.entries.empty() ? std::nullopt : snapshot.entries.front().value;
  if (round_.is(snapshot.watch)) {
    if (snapshot.watch == round_.watch) make_current(round_);
    take_round(value);
  } else if (assignment_.is(snapshot.watch)) {
    if (snapshot.watch == assignment_.watch) make_current(assignment_);
    take_assignment(value);
  } else if (snapshot.watch == outcome_watch_) {
    take_outcome(value, true);
  } else if (snapshot.watch == history_watch_) {
    take_history(value);
  }
}

void MemberAgent::on_changes(const WatchChanges& changes, Time now) {
  for (const auto& [key, value] : changes.changes) {
    if (round_.is(changes.watch)) {
      take_round(value);
      word_of_leader_ = now;
    } else if (assignment_.is(changes.watch)) {
      take_assignment(value);
    } else if (changes.watch == outcome_watch_) {
      take_outcome(value, false);
    } else if (changes.watch == history_watch_) {
      take_history(value);
    } else if (closing_watch_ != 0 && changes.watch == closing_watch_ && others_ &&
               key != keys_.member(config_.ticket)) {
      if (value) {
        others_->insert(key);
      } else {
        others_->erase(key);
      }
    }
  }
}

void MemberAgent::on_commit(const CommitResult& result, Time now) {
  if (request_ == 0 || result.request != request_) return;
  request_ = 0;
  switch (result.outcome) {
    case CommitOutcome::Committed:
      registered_ = true;
      unknown_ = false;
      refused_writes_ = 0;
      rejections_.clear();
      break;
    case CommitOutcome::Rejected:
      dirty_ = true;
      if (rejections_.note(kTakesNoWrite, result.detail, now))
        outbox_.log(rejections_.warning(), true);
      if (rejections_.over(now)) give_up(rejections_.text());
      retry_at_ = rejections_.retry_at();
      break;
    case CommitOutcome::Refused:
      dirty_ = true;
      if (++refused_writes_ >= kMaxRefusedWrites) failed_ = "the store refuses what drun writes";
      retry_at_ = now + kRetry;
      break;
    case CommitOutcome::Unknown:  // written again once the link is up
      dirty_ = true;
      break;
  }
}

void MemberAgent::on_worker_store_ready(int round, std::uint16_t port) {
  if (round != preparing_) return;
  document_.prepared = round;
  document_.prepared_worker_store_port = port;
  dirty_ = true;
}

void MemberAgent::on_workers_succeeded(int round) {
  if (round != held_ || workers_ != Workers::Running) return;
  workers_ = Workers::Succeeded;
  document_.succeeded = round;
  dirty_ = true;
}

void MemberAgent::on_workers_failed(int round, FailureSummary failure) {
  if (round != held_ || workers_ != Workers::Running) return;
  if (lease_over_) return;  // they were killed: none has failed
  workers_ = Workers::Failed;
  document_.failed = round;
  document_.failure = std::move(failure);
  dirty_ = true;
}

void MemberAgent::on_workers_stopped() {
  if (held_ == 0) return;
  note_left(held_);
  held_ = 0;
  workers_ = Workers::None;
  lease_over_ = false;
}

void MemberAgent::on_workers_stalled(int round, bool stalled) {
  const bool held = round == held_ && workers_ == Workers::Running;
  const int said = stalled && held ? round : 0;
  dirty_ |= said != document_.stalled;
  document_.stalled = said;
}

void MemberAgent::note_left(int round) {
  if (round <= document_.left) return;
  document_.left = round;
  dirty_ = true;
}

void MemberAgent::on_stop_requested(std::string reason, int exit_code, Time now) {
  if (stop_ || leave_) return;
  stop_ = StopRequest{std::move(reason), exit_code};
  stop_since_ = now;
}

// The store of a host ends with it, and the job with that, if no other succeeds it.
void MemberAgent::on_leave_requested(std::string reason, int exit_code, Time now) {
  if (carries_job()) return on_stop_requested(std::move(reason), exit_code, now);
  if (stop_ || leave_) return;
  leave_ = StopRequest{std::move(reason), exit_code};
  leave_since_ = now;
}

void MemberAgent::on_facts(std::string sheet) {
  facts_ = std::move(sheet);
  facts_written_ = false;
}

void MemberAgent::refuse(std::string reason, bool unfit) {
  if (refusal_) return;
  refusal_ = Refusal{std::move(reason), unfit};
}

void MemberAgent::give_up(std::string reason) {
  if (!given_up_) given_up_ = std::move(reason);
}

bool MemberAgent::spare() const {
  return round_.document && round_.document->phase == Phase::Running && held_ == 0 &&
         last_place_ < round_.document->number;
}

void MemberAgent::advance(Time now) {
  if (finished_) return;
  find_ending(now);
  speak();
  renew_lease();
  follow(now);
  leave(now);
  publish_facts();
  publish(now);
}

// Others wait for this node's workers only if the store shows them that it is there. What it has
// written in an earlier session is gone, and a store that is older than that may have forgotten it:
// until it is written again, the lease of before is all that the workers have.
void MemberAgent::renew_lease() {
  if (!alive_ || alive_ == renewed_ || (unknown_ && held_ != 0)) return;
  renewed_ = alive_;
  outbox_.push(RenewLeaseAction{*renewed_});
}

// Workers may run only in the round that the store calls running; anything else stops them. If the
// store was set back or emptied, a leader restores the round from what the members claim: that
// takes up to two keep-alive limits, and healthy workers must not be stopped meanwhile.
void MemberAgent::keep_or_stop(Time now) {
  const auto& round = round_.document;
  if (held_ == 0) return;
  const bool behind = is_behind(round, held_);
  if (behind && now < up_since_ + config_.keep_alive * 2) return;
  if (!round) return stop_workers("the store has lost the job", false);
  if (round->phase == Phase::Running && round->number == held_) return;
  // Workers that have succeeded are not stopped: what is left of them is only cleaned up.
  const char* ended = workers_ == Workers::Succeeded ? "" : "the job has ended";
  const bool known =
      !round->reason.empty() && (round->phase == Phase::Stopping || round->phase == Phase::Closed);
  stop_workers(known                           ? round->reason
               : round->phase == Phase::Closed ? ended
                                               : "the job went on without this node",
               false);
}

void MemberAgent::tell_of_hang() {
  const auto& round = round_.document;
  const bool stalls = held_ != 0 && document_.stalled == held_ && !stop_asked();
  const bool hung = stalls && round && round->hung && round->number == held_;
  if (std::exchange(hung_, hung) || !hung) return;
  outbox_.push(HangAction{});
}

void MemberAgent::follow(Time now) {
  if (stop_ || leave_ || ending_) {
    // Out of touch with the store there is no time for a grace, because the lease runs out; a node
    // that gave up by itself, or was told to by the leader, has that time.
    const bool out_of_touch = ending_ && ending_->end == End::StoreLost && !given_up_ && !outcome_;
    return stop_workers(stop_    ? stop_->reason
                        : leave_ ? leave_->reason
                                 : ending_->text,
                        out_of_touch);
  }
  // The guardian kills them, whatever else is known; then this node has left the round.
  if (lease_over_ && (workers_ == Workers::Running || workers_ == Workers::Stopping))
    stop_workers("out of touch with the store for longer than the lease of " +
                     duration_text(config_.keep_alive),
                 true);
  const bool known = round_.current && assignment_.current;
  if (!up() || (!known && round_.stale == 0)) return;
  keep_or_stop(now);
  if (!known) return;
  tell_of_hang();

  const auto& round = round_.document;
  const bool over = round && is_alive(round->phase);
  const bool waiting = held_ == 0 && !over;
  if (!waiting) {
    waiting_since_.reset();
  } else if (!waiting_since_) {
    waiting_since_ = now;
  }
  if (!round || held_ != 0) return;

  // A round that is being stopped, or is over, will not be started here any more. Saying so lets
  // the leader begin the next one without waiting for us.
  const bool current_is_over = round->phase == Phase::Gathering || round->phase == Phase::Stopping;
  const int over_until = current_is_over ? round->number : round->number - 1;
  if (last_place_ <= over_until) note_left(last_place_);

  if (!assignment_.document || assignment_.document->assignment.round != round->number) return;
  const auto& place = assignment_.document->assignment;
  if (round->phase == Phase::Preparing && !assignment_.document->go && preparing_ != place.round) {
    preparing_ = place.round;
    outbox_.push(PrepareWorkerStoreAction{place});
  }
  if (round->phase == Phase::Running && assignment_.document->go && document_.left < place.round &&
      may_start(now)) {
    held_ = place.round;
    workers_ = Workers::Running;
    lease_over_ = false;
    document_.claim = place;
    if ((ran_ == place.round ? ran_before_ : ran_) > place_before_)
      outbox_.log(taken_in_text(config_.host, place));
    outbox_.push(StartAction{place});
  }
}

// While the session surely lives, and shows this node, the others wait for it before they begin
// another round. A word that is older may be out of date. And if the store were lost now: who
// begins the next round elsewhere must know of this one, or count this node among those of an
// earlier one.
bool MemberAgent::may_start(Time now) const {
  if (unknown_ || (renewed_ && now >= *renewed_ + config_.keep_alive)) return false;
  const bool succeeded = vote_ && round_.document->latest.exists();
  return !succeeded || firm_;
}

bool MemberAgent::time_limit_over() const {
  if (stop_) return stop_->exit_code == kTimeLimit;
  if (ending_) return is_time_limit(*ending_);
  return round_.document && round_.document->cause == Cause::TimeLimit;
}

bool MemberAgent::worker_failed() const {
  if (stop_ || leave_) return false;
  if (ending_) return ending_->end == End::Failure;
  return round_.document && round_.document->cause == Cause::Failure;
}

bool MemberAgent::found_hung() const {
  return !stop_ && !leave_ && round_.document && round_.document->hung;
}

void MemberAgent::stop_workers(const std::string& reason, bool immediately) {
  if (held_ == 0 || workers_ == Workers::Killing || (stop_asked() && !immediately)) return;
  workers_ = immediately ? Workers::Killing : Workers::Stopping;
  outbox_.push(StopAction{reason, immediately, stop_signal(), time_limit_over(), worker_failed(),
                          found_hung()});
}

// The signal that an agent of the job received; its exit code is 128 + the signal.
int MemberAgent::stop_signal() const {
  if (stop_) return signal_of_exit_code(stop_->exit_code);
  if (leave_) return signal_of_exit_code(leave_->exit_code);
  const bool told = ending_ && ending_->end == End::Stopped;
  return told ? signal_of_exit_code(ending_->exit_code) : 0;
}

// A failure in a few words, if the store did not take more.
MemberDocument MemberAgent::document() const {
  MemberDocument document = document_;
  if (document.failure && rejections_.any())
    document.failure = without_details(std::move(*document.failure));
  return document;
}

// Before the first word of this agent if they are known by then. Nobody can do anything about a
// store that does not take them.
void MemberAgent::publish_facts() {
  if (facts_.empty() || facts_written_ || !up() || finished_ || refusal_ || outcome_) return;
  facts_written_ = true;
  Transaction transaction;
  transaction.writes.push_back({keys_.facts_of(config_.ticket), facts_, true});
  outbox_.commit(std::move(transaction));
}

void MemberAgent::publish(Time now) {
  const bool has_part = (!outcome_ && !refusal_) || (unknown_ && held_ != 0);
  if (!dirty_ || !up() || finished_ || !has_part || request_ != 0) return;
  // The leader must know what this machine is like before it counts on it.
  if (config_.unfit && facts_.empty()) return;
  // Who says that it has workers of a round that may be over lets the others wait for more of them.
  if (unknown_ && lease_over_ && held_ != 0 && may_come_back()) return;
  if (retry_at_ && now < *retry_at_) return;
  retry_at_.reset();
  Transaction transaction;
  transaction.writes.push_back({keys_.member(config_.ticket), encode(document()), true});
  request_ = outbox_.commit(std::move(transaction));
  dirty_ = false;
}

std::optional<Time> MemberAgent::next_deadline() const {
  if (finished_) return std::nullopt;
  EarliestDeadline next;
  const bool behind = is_behind(round_.document, held_);
  if (up() && round_.current && held_ != 0 && behind && !stop_asked())
    next.include(up_since_ + config_.keep_alive * 2);
  if (up()) next.include(last_touch_ + config_.keep_alive / 3);
  next.include(closing_since_, config_.close_timeout);
  if (closing_since_) next.include(others_come_until_);
  if (ending_) {
    next.include(refused_until());
    return next.time();
  }
  if (up()) next.include(retry_at_);
  if (stop_) {
    next.include(stop_since_ + stop_wait());
    return next.time();
  }
  if (leave_) {
    if (unheld_since_) next.include(is_said() ? leave_ends() : *unheld_since_ + stop_wait());
    return next.time();
  }
  if (touch_ == Touch::Lost) next.include(out_of_touch_since_ + patience_without_store());
  if (!was_up()) next.include(waiting_since_, config_.join_timeout);
  if (up() && waiting()) next.include(patience_ends());
  return next.time();
}

}  // namespace drun::rendezvous
