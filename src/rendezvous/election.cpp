#include "rendezvous/election.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"

namespace drun::rendezvous {
namespace {

// An agent that was not elected and sees no leader stands again after this long.
constexpr Milliseconds kStandAgain{1'000};
// Anybody can write the leader key. Whoever leads has a member's key by now, and later ones.
constexpr Milliseconds kLookForLeader{5'000};
constexpr Milliseconds kLookAgain{60'000};
constexpr std::int64_t kMostEpoch = std::int64_t{1} << 62;  // nobody gets there

}  // namespace

void Election::begin(bool hosts) {
  watch_ = outbox_.watch(keys_.leader, false);
  if (hosts) current_ = true;
}

bool Election::on_snapshot(const WatchSnapshot& snapshot, Time now) {
  if (snapshot.watch != watch_) return false;
  current_ = true;
  return on_value(snapshot.entries.empty() ? std::nullopt : snapshot.entries.front().value, now);
}

bool Election::on_value(const std::optional<std::string>& value, Time now) {
  const bool is_new = value && value != value_;
  stop_looking();
  holder_ = value ? Holder::Other : Holder::Nobody;
  if (value) {
    stand_at_.reset();
    rejections_.clear();
    const auto document = decode_leader(*value);
    if (!document || document->epoch > kMostEpoch) {
      holder_ = Holder::Nobody;
    } else {
      epoch_ = std::max(epoch_, document->epoch);
      if (document->ticket == config_.ticket) {
        // If it was not by this agent, it would not go with it.
        holder_ = value == standing_as_ ? Holder::Self : Holder::Nobody;
      } else {
        other_ = *document;
        look_at_ = now + kLookForLeader;
      }
    }
  }
  if (value == leading_as_) seen_leading_ = true;
  value_ = value;
  return is_new;
}

// Is there a member of the name that the leader key has?
void Election::look(const Candidate& candidate, Time now) {
  if (!may_look(candidate) || now < *look_at_) return;
  look_at_.reset();
  look_watch_ = outbox_.watch(keys_.member(other_.ticket), false);
}

void Election::on_look(const WatchSnapshot& snapshot, Time now) {
  if (look_watch_ == 0 || snapshot.watch != look_watch_) return;
  stop_looking();
  holder_ = snapshot.entries.empty() ? Holder::Nobody : Holder::Other;
  if (holder_ == Holder::Other) look_at_ = now + kLookAgain;
}

void Election::on_rejected(WatchId watch, Time now) {
  if (look_watch_ == 0 || watch != look_watch_) return;
  look_watch_ = 0;
  look_at_ = now + kLookAgain;
}

void Election::stop_looking() {
  look_at_.reset();
  if (look_watch_ != 0) outbox_.unwatch(std::exchange(look_watch_, 0));
}

void Election::stand(const Candidate& candidate, Time now) {
  if (!may_stand(candidate) || request_ != 0) return;
  if (!stand_at_) stand_at_ = now + candidate.stand_delay;
  if (now < *stand_at_) return;
  stand_at_ = now + kStandAgain;
  epoch_ = std::max(epoch_, candidate.epoch);
  standing_as_ = encode(LeaderDocument{config_.ticket, ++epoch_, config_.host});
  Transaction transaction;
  // What leads nobody is replaced. If it does after all, all that its author writes is guarded by
  // it, too.
  transaction.guards.push_back({keys_.leader, value_});
  transaction.writes.push_back({keys_.leader, standing_as_, true});
  request_ = outbox_.commit(std::move(transaction));
}

std::optional<CommitOutcome> Election::on_commit(const CommitResult& result, Time now) {
  if (request_ == 0 || result.request != request_) return std::nullopt;
  request_ = 0;
  if (result.outcome == CommitOutcome::Rejected) {
    if (rejections_.note(kTakesNoWrite, result.detail, now))
      outbox_.log(rejections_.warning(), true);
    stand_at_ = std::max(stand_at_.value_or(now), *rejections_.retry_at());
  }
  return result.outcome;
}

void Election::lead(std::string value) {
  request_ = 0;  // its answer may still come, and means nothing then
  leading_as_ = std::move(value);
  seen_leading_ = value_ == leading_as_;
}

void Election::read_again() {
  outbox_.unwatch(watch_);
  watch_ = outbox_.watch(keys_.leader, false);
  current_ = false;
}

LeaderDocument Election::take_other() {
  return std::exchange(other_, {});
}

std::optional<Time> Election::next_deadline(const Candidate& candidate) const {
  EarliestDeadline next;
  if (may_stand(candidate) && request_ == 0) next.include(stand_at_);
  if (may_look(candidate)) next.include(look_at_);
  return next.time();
}

}  // namespace drun::rendezvous
