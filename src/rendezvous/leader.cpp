#include "rendezvous/leader.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/deadline.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

constexpr Milliseconds kFirstLook{5'000};  // after the wait began
constexpr Milliseconds kLastLook{1'000};   // before the time-out

constexpr std::string_view kSessionEnded =
    "its session has ended: nothing was heard of it any more";

// To what matters most: how the job ended. The keys that would go stay.
void shorten(const Keys& keys, Decision& decision) {
  Outcome& outcome = *decision.outcome;
  if (outcome.failure) outcome.failure = without_details(std::move(*outcome.failure));
  decision.writes.assign(1, {keys.outcome, encode(outcome), false});
  decision.refused.clear();
  decision.dropped.clear();
}

}  // namespace

Leader::Leader(const Config& config, Outbox& outbox, std::string value, std::int64_t epoch,
               std::unique_ptr<State> previous, const RoundDocument& seen,
               std::optional<Time> grace_until, std::optional<Time> others_until,
               std::optional<Time> waiting_since, const Succession& succession,
               LeaderDocument before)
    : config_(config),
      keys_(config.run_id),
      outbox_(outbox),
      value_(std::move(value)),
      epoch_(epoch),
      seen_(seen),
      grace_until_(grace_until),
      others_until_(others_until),
      waiting_since_(waiting_since),
      succession_(succession),
      before_(std::move(before)),
      watch_(outbox, keys_.prefix),
      writer_(outbox, {keys_.leader, value_}),
      state_(std::move(previous)) {}

std::optional<Time> Leader::others_come_until(Time now) const {
  if (state_->unheard.empty()) return std::nullopt;
  if (state_->succession.sure_from <= now) return std::nullopt;
  return state_->succession.sure_from;
}

std::unique_ptr<State> Leader::retire() {
  watch_.end();
  if (look_ != 0) outbox_.unwatch(look_);
  return std::move(state_);
}

void Leader::on_link_lost() {
  watch_.on_link_lost();
}

void Leader::on_snapshot(const WatchSnapshot& snapshot, Time now) {
  if (look_ != 0 && snapshot.watch == look_ && state_ != nullptr) {
    OtherJobs others(state_->keys);
    others.on_snapshot(snapshot.entries);
    state_->other_jobs = others.text();
    state_->progress_due = true;
    outbox_.unwatch(std::exchange(look_, 0));
  }
  if (!watch_.on_snapshot(snapshot.watch)) return;
  // The store may have been set back while this leader looked away. Nodes that had come back within
  // the grace may be out of touch again, and have workers, so the grace begins anew; not if the
  // store knows a round that this leader planned, because then it knows that round's nodes, too.
  if (watch_.take_looked_away() && grace_until_ && state_ != nullptr &&
      state_->round.number != planned_)
    grace_until_ = now + config_.keep_alive;
  std::vector<std::string> problems;
  auto state =
      std::make_unique<State>(restore(config_, epoch_, snapshot.entries, state_.get(), seen_,
                                      grace_until_, others_until_, now, problems, succession_));
  // The wait counts from when this agent began to wait, not from when it became the leader: else
  // each new leader would begin the time limit anew.
  std::set<std::string, std::less<>> known;
  if (state_ != nullptr)
    for (const auto& [ticket, member] : state_->members)
      known.insert(ticket);
  if (state_ == nullptr && waiting_since_ && state->waiting_since)
    state->waiting_since = waiting_since_;
  state_.swap(state);
  note_unseen(state.get());
  for (const Change& entry : snapshot.entries)
    note_facts(entry);
  for (const auto& problem : problems)
    outbox_.log(problem, true);
  // Not of a job that has begun: the leader before has told those, but not who has come to a later
  // store at once.
  const bool none_told =
      state_->round.number == 0 || (succession_.is_later() && !state_->round_written);
  for (const auto& [ticket, member] : state_->members)
    if (none_told && !known.contains(ticket)) tell_joined(ticket, member.document);
  writer_.drop();
  disagreement_ =
      rendezvous::disagreement(config_.host, full_agreement(config_), state_->agreement);
}

void Leader::on_changes(const WatchChanges& changes, Time now) {
  if (!watch_.is(changes.watch) || !watch_.current()) return;
  for (const auto& change : changes.changes) {
    if (watch_.current()) apply(change, now);
  }
}

void Leader::apply(const Change& change, Time now) {
  const auto& members = state_->keys.members;
  if (const auto place = state_->keys.place_of_gone(change.key); place && change.value)
    return note_gone(*state_, *place, now);
  if (change.key.starts_with(state_->keys.death)) {
    if (change.value) note_death(*state_, change.key.substr(state_->keys.death.size()));
    return;
  }
  note_facts(change);
  // Everything else under the prefix is the leader's own writing.
  if (change.key.compare(0, members.size(), members) != 0) return;
  const auto ticket = change.key.substr(members.size());
  if (!change.value) {
    tell_gone(ticket);
    return forget(*state_, config_, ticket, now);
  }
  auto document = decode_member(*change.value);
  const auto& round = state_->round;
  std::string problem = document ? impossible(round, *document) : "";
  if (!problem.empty()) {
    outbox_.log(problem, true);
    observe(*state_, config_, ticket, {}, now, problem);
  } else if (document && round.phase != Phase::Closed &&
             // It tells of a round that this state lacks: the snapshot of a new watch has it.
             ((claims_unknown_round(round, *document) && !state_->planned.contains(ticket)) ||
              is_news(*document))) {
    read_again();
  } else if (document) {
    if (!state_->members.contains(ticket) && round.phase != Phase::Closed)
      tell_joined(ticket, *document);
    observe(*state_, config_, ticket, std::move(*document), now);
  } else {
    outbox_.log(document.error().what(), true);
    observe(*state_, config_, ticket, {}, now, document.error().what());
  }
}

void Leader::note_facts(const Change& change) {
  if (!change.key.starts_with(keys_.facts)) return;
  const std::string ticket = change.key.substr(keys_.facts.size());
  if (!change.value) {
    state_->facts.erase(ticket);
    return;
  }
  state_->facts[ticket] = *change.value;
  new_facts_ = true;
}

// Nothing waits for it: a round begins whatever the sheets say.
void Leader::compare_facts() {
  const State& s = *state_;
  if (!new_facts_ || s.round.phase != Phase::Running || s.facts.size() < s.slots.size()) return;
  CompareFactsAction action;
  for (const auto& [ticket, slot] : s.slots) {
    const auto sheet = s.facts.find(ticket);
    if (sheet == s.facts.end()) return;
    action.nodes.push_back({ticket, slot.host, slot.group_rank, sheet->second});
  }
  std::sort(action.nodes.begin(), action.nodes.end(),
            [](const NodeFacts& a, const NodeFacts& b) { return a.group_rank < b.group_rank; });
  for (const auto& [ticket, sheet] : s.facts)
    if (const auto member = s.members.find(ticket);
        member != s.members.end() && !s.slots.contains(ticket))
      action.nodes.push_back({ticket, member->second.document.host, -1, sheet});
  new_facts_ = false;
  outbox_.push(std::move(action));
}

// Who comes over from the store before was told of there; unless it has missed a round since then.
void Leader::tell_joined(const std::string& ticket, const MemberDocument& document) {
  const bool was_gone = told_gone_.erase(ticket) > 0;
  const bool comes_over = succession_.is_later() && document.latest.exists() &&
                          !document.latest.before(state_->round.latest);
  if (was_gone || !comes_over) outbox_.tell({News::What::Joined, ticket, document.host, ""});
}

std::string Leader::why_gone(std::string_view ticket) const {
  return std::string(has_died(*state_, ticket) ? kAgentDied : kSessionEnded);
}

void Leader::tell_gone(const std::string& ticket) {
  unseen_.erase(ticket);
  const auto member = state_->members.find(ticket);
  if (member == state_->members.end() || member->second.standing == Standing::Refused ||
      state_->round.phase == Phase::Closed)
    return;
  const MemberDocument& document = member->second.document;
  told_gone_.insert(ticket);
  outbox_.tell({News::What::Gone, ticket, document.host,
                document.leave ? document.leave->reason : why_gone(ticket)});
}

// Who led before cannot have told of its own end, nor of nodes that went with it or after it: a
// round that still runs was not stopped for them. `previous`: what was known before the snapshot.
void Leader::note_unseen(const State* previous) {
  const State& s = *state_;
  if (std::exchange(began_, true)) {
    for (const auto& [ticket, member] : previous->members) {
      const auto& leave = member.document.leave;
      if (member.standing != Standing::Refused)
        unseen_.emplace(ticket, Unseen{member.document.host, leave ? leave->reason : ""});
    }
    return;
  }
  for (const auto& [ticket, slot] : s.slots)
    if (s.round.phase == Phase::Running)
      unseen_.emplace(ticket, Unseen{slot.host, said_of_leaving(s, slot)});
  if (before_.ticket == config_.ticket) return;
  const auto slot = s.slots.find(before_.ticket);
  unseen_.emplace(
      before_.ticket,
      Unseen{before_.host, slot == s.slots.end() ? "" : said_of_leaving(s, slot->second)});
}

void Leader::tell_unseen(Time now) {
  const State& s = *state_;
  if (unseen_.empty() || (s.grace_until && now < *s.grace_until)) return;
  for (const auto& [ticket, node] : std::exchange(unseen_, {})) {
    if (s.members.contains(ticket) || node.host.empty() || s.round.phase == Phase::Closed) continue;
    told_gone_.insert(ticket);
    outbox_.tell(
        {News::What::Gone, ticket, node.host, node.why.empty() ? why_gone(ticket) : node.why});
  }
}

// Its author knows of a later round than this leader.
bool Leader::is_news(const MemberDocument& document) const {
  const Place& latest =
      writer_.decision() ? writer_.decision()->round.latest : state_->round.latest;
  return document.seen > ran() || (is_unknown(*state_, latest, document.latest) &&
                                   is_unknown(*state_, state_->round.latest, document.latest));
}

// The last round that was started, if what is being written takes effect, too.
int Leader::ran() const {
  return std::max(state_->round.ran, writer_.decision() ? writer_.decision()->round.ran : 0);
}

void Leader::on_watch_rejected(const WatchRejected& event, Time now) {
  if (look_ != 0 && event.watch == look_) look_ = 0;  // it can do without
  if (!watch_.on_rejected(event.watch)) return;
  writer_.drop();
  note_rejection(kShowsNoKeys, event.detail, now);
}

void Leader::on_commit(const CommitResult& result, Time now) {
  const bool last_word = reign_.on_commit(result);
  if (!last_word && !writer_.is(result.request)) return;
  switch (result.outcome) {
    case CommitOutcome::Committed:
      if (last_word) return;
      if (auto decision = writer_.on_taken()) tell_written(std::move(*decision), now);
      return;
    case CommitOutcome::Rejected:
      return on_rejected(result.detail, now);
    case CommitOutcome::Refused:
      // The only guard is the leader key: it does not hold our value any more.
      reign_.depose();
      return;
    case CommitOutcome::Unknown:
      // The connection broke before the answer, and only the store knows whether the decision took
      // effect. The snapshot of a new watch shows it, whenever the reconnection's own one comes.
      read_again();
      return;
  }
}

void Leader::tell_written(Decision decision, Time now) {
  rejections_.clear();
  for (const auto& line : decision.log)
    outbox_.log(line);
  for (const SetAside& each : decision.set_aside)
    outbox_.push(SetAsideAction{each.host, each.why, each.cleared});
  tell_news(decision);
  if (!decision.stopping.empty()) outbox_.push(RoundStopsAction{decision.stopping});
  if (decision.round.number != state_->round.number) planned_ = decision.round.number;
  adopt(*state_, config_, decision, now);
}

// What is now in the store.
void Leader::tell_news(Decision& decision) {
  for (const auto& [ticket, reason] : decision.refused)
    outbox_.tell({News::What::Refused, ticket, host_of(ticket), reason});
  for (auto& news : decision.news)
    outbox_.tell(std::move(news));
}

std::string Leader::host_of(const std::string& ticket) const {
  const auto member = state_->members.find(ticket);
  return member == state_->members.end() ? "" : member->second.document.host;
}

void Leader::read_again() {
  writer_.drop();
  watch_.read_again();
}

// No guard has failed, so this one still leads. Of a large decision the store may have taken the
// first parts.
void Leader::on_rejected(const std::string& why, Time now) {
  note_full_store(now);
  note_rejection(kTakesNoWrite, why, now);
  if (writer_.state() == DecisionWriter::State::PartlyTaken) return read_again();
  writer_.drop();
}

void Leader::note_full_store(Time now) {
  if (state_ != nullptr) give_time_to_stop(*state_, now);
}

void Leader::note_rejection(const std::string& what, const std::string& why, Time now) {
  if (rejections_.note(what, why, now)) outbox_.log(rejections_.warning(), true);
}

// Perhaps it takes one small write: then all agents learn why the job is over.
void Leader::end_job() {
  Transaction transaction;
  transaction.guards.push_back({keys_.leader, value_});
  transaction.writes.push_back(
      {keys_.outcome, encode(Outcome{End::StoreLost, kDrunFailed, rejections_.text(), {}}), false});
  reign_.on_last_word_sent(outbox_.commit(std::move(transaction)));
}

// One decision at a time: the next one must see what the store made of this one.
bool Leader::may_decide() const {
  return reign_.lasts() && writer_.idle() && disagreement_.empty();
}

void Leader::advance(Time now) {
  if (!may_decide() || rejections_.waits(now)) return;
  if (watch_.state() == JobWatch::State::Reading) return;
  if (!watch_.current()) return rejections_.last_attempt(now) ? end_job() : read_again();
  tell_unseen(now);
  look_for_other_jobs(now);
  compare_facts();
  Decision decision = decide(*state_, config_, now);
  // A store that is full may still take a short outcome, so the last attempt is spent on that.
  if (rejections_.any() && decision.outcome) {
    shorten(keys_, decision);
  } else if (rejections_.last_attempt(now) && !decision.writes.empty()) {
    return end_job();
  }
  if (!decision.writes.empty()) return writer_.write(std::move(decision), most_writes_);
  rejections_.clear();
  for (const auto& line : decision.log)
    outbox_.log(line);
  adopt(*state_, config_, decision, now);
  if (!decision.unfit.empty()) advance(now);  // with the others
}

std::optional<Time> Leader::next_look() const {
  if (look_ != 0 || state_->round.phase != Phase::Gathering || !state_->waiting_since) return {};
  const Time begin = *state_->waiting_since;
  const Time first = begin + std::min(kFirstLook, config_.join_timeout / 2);
  const Time last = begin + config_.join_timeout - std::min(kLastLook, config_.join_timeout / 4);
  if (!looked_at_ || *looked_at_ < first) return first;
  if (*looked_at_ < last) return last;
  return {};
}

void Leader::look_for_other_jobs(Time now) {
  const auto due = next_look();
  if (!due || now < *due) return;
  looked_at_ = now;
  look_ = outbox_.watch(std::string(kAllJobs), true);
}

std::optional<Time> Leader::next_deadline() const {
  if (!may_decide()) return std::nullopt;
  if (watch_.state() == JobWatch::State::Reading) return std::nullopt;
  if (rejections_.any()) return rejections_.retry_at();
  if (!watch_.current()) return std::nullopt;
  EarliestDeadline next;
  next.include(rendezvous::next_deadline(*state_, config_));
  next.include(next_look());
  if (!unseen_.empty()) next.include(state_->grace_until);
  return next.time();
}

}  // namespace drun::rendezvous
