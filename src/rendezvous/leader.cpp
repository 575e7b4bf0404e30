#include "rendezvous/leader.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
namespace drun::rendezvous {
namespace {

constexpr Milliseconds kFirstLook{5'000};  // after the wait began
constexpr Milliseconds kLastLook{1'000};   // before the time-out

}  // namespace

Leader::Leader(const Config& config, Outbox& outbox, std::string value, std::int64_t epoch,
               std::unique_ptr<State> previous, const RoundDocument& seen,
               std::optional<Time> grace_until, std::optional<Time> waiting_since)
    : config_(config),
      outbox_(outbox),
      value_(std::move(value)),
      epoch_(epoch),
      seen_(seen),
      grace_until_(grace_until),
      waiting_since_(waiting_since),
      state_(std::move(previous)) {
  watch_ = outbox_.watch(Keys(config_.run_id).prefix, true);
}

std::unique_ptr<State> Leader::retire() {
  outbox_.unwatch(watch_);
  if (look_ != 0) outbox_.unwatch(look_);
  return std::move(state_);
}

void Leader::on_link_lost() {
  current_ = false;
}

void Leader::on_snapshot(const WatchSnapshot& snapshot, Time now) {
  if (look_ != 0 && snapshot.watch == look_ && state_ != nullptr) {
    OtherJobs others(state_->keys);
    others.on_snapshot(snapshot.entries);
    state_->other_jobs = others.text();
    state_->progress_due = true;
    outbox_.unwatch(std::exchange(look_, 0));
  }
  if (snapshot.watch != watch_) return;
  std::vector<std::string> problems;
  auto state = std::make_unique<State>(
      restore(config_, epoch_, snapshot.entries, state_.get(), seen_, grace_until_, now, problems));
  // The wait counts from when this agent began to wait, not from when it became the leader: else
  // each new leader would begin the time limit anew.
  if (state_ == nullptr && waiting_since_ && state->waiting_since)
    state->waiting_since = waiting_since_;
  state_ = std::move(state);
  for (const auto& problem : problems)
    outbox_.log(problem, true);
  pending_.reset();
  requests_.clear();
  current_ = true;
  disagreement_ =
      rendezvous::disagreement(config_.host, full_agreement(config_), state_->agreement);
}

void Leader::on_changes(const WatchChanges& changes, Time now) {
  if (changes.watch != watch_ || !current_) return;
  for (const auto& change : changes.changes) {
    if (current_) apply(change, now);
  }
}

void Leader::apply(const Change& change, Time now) {
  const auto& members = state_->keys.members;
  // Everything else under the prefix is the leader's own writing.
  if (change.key.compare(0, members.size(), members) != 0) return;
  const auto ticket = change.key.substr(members.size());
  if (!change.value) return forget(*state_, config_, ticket, now);
  auto document = decode_member(*change.value);
  const auto& round = state_->round;
  std::string problem = document ? impossible(round, *document) : "";
  if (!problem.empty()) {
    outbox_.log(problem, true);
    observe(*state_, config_, ticket, {}, now, problem);
  } else if (document && round.phase != Phase::Closed &&
             (claims_unknown_round(round, *document) || document->seen > round.number)) {
    read_again();
  } else if (document) {
    observe(*state_, config_, ticket, std::move(*document), now);
  } else {
    outbox_.log(document.error().what(), true);
    observe(*state_, config_, ticket, {}, now, document.error().what());
  }
}

void Leader::on_commit(const CommitResult& result, Time now) {
  const auto request = std::find(requests_.begin(), requests_.end(), result.request);
  if (request == requests_.end()) return;
  requests_.erase(request);
  switch (result.outcome) {
    case CommitOutcome::Committed:
      if (!requests_.empty() || !pending_) return;
      for (const auto& line : pending_->log)
        outbox_.log(line);
      if (!pending_->stopping.empty()) outbox_.push(RoundStopsAction{pending_->stopping});
      adopt(*state_, config_, *std::exchange(pending_, std::nullopt), now);
      return;
    case CommitOutcome::Refused:
      // The only guard is the leader key: it does not hold our value any more.
      deposed_ = true;
      return;
    case CommitOutcome::Unknown:
      // The connection broke before the answer, and only the store knows whether the decision took
      // effect. The snapshot of a new watch shows it, whenever the reconnection's own one comes.
      read_again();
      return;
  }
}

// The snapshot of the new watch comes after all that was asked for before.
void Leader::read_again() {
  pending_.reset();
  requests_.clear();
  current_ = false;
  outbox_.unwatch(watch_);
  watch_ = outbox_.watch(state_->keys.prefix, true);
}

// Each part of a large decision is guarded by the leader key, so a leader that was replaced between
// two parts writes no further one. The round's document is in the last part: members act on nothing
// before it is there.
void Leader::write(Decision decision) {
  auto writes = std::exchange(decision.writes, {});
  decision.writes.emplace_back();  // adopt() only asks whether there were any
  pending_ = std::move(decision);
  for (std::size_t begin = 0; begin < writes.size(); begin += kMaxWrites) {
    const auto end = std::min(writes.size(), begin + kMaxWrites);
    Transaction transaction;
    transaction.guards.push_back({state_->keys.leader, value_});
    transaction.writes.assign(
        std::make_move_iterator(writes.begin() + static_cast<std::ptrdiff_t>(begin)),
        std::make_move_iterator(writes.begin() + static_cast<std::ptrdiff_t>(end)));
    requests_.push_back(outbox_.commit(std::move(transaction)));
  }
}

// One decision at a time: the next one must see what the store made of this one.
void Leader::advance(Time now) {
  if (!current_ || deposed_ || pending_ || !disagreement_.empty()) return;
  look_for_other_jobs(now);
  Decision decision = decide(*state_, config_, now);
  if (decision.writes.empty()) return adopt(*state_, config_, decision, now);
  write(std::move(decision));
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
  if (!current_ || deposed_ || pending_ || !disagreement_.empty()) return std::nullopt;
  EarliestDeadline next;
  next.include(rendezvous::next_deadline(*state_, config_));
  next.include(next_look());
  return next.time();
}

}  // namespace drun::rendezvous
