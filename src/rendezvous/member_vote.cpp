#include "rendezvous/member_vote.hpp"

#include <algorithm>
#include <utility>

namespace drun::rendezvous {

void MemberVote::begin() {
  if (state_ != State::Silent) return;
  state_ = State::InDoubt;
  vote_.job = keys_.prefix;
  outbox_.push(VoteAction{vote_, successors_});
}

// The store names its last settled round, of which a majority knows. If this node's place is in
// that round, whoever has a majority knows of this node.
void MemberVote::on_renewed(const Renewed& event) {
  settled_era_ = event.settled_era;
  const Place& latest = vote_.latest;
  if (latest.era != event.settled_era || latest.round != event.settled_round) return;
  if (state_ == State::InDoubt) state_ = State::Firm;
}

void MemberVote::speak(const RoundDocument& round, std::optional<int> rank) {
  if (state_ == State::Silent) return;
  Place place = round.latest;
  if (rank) place.rank = *rank;
  Place latest = vote_.latest;
  if (place.exists() && latest.before(place)) {
    if (latest.rank < 0 || !latest.same_round(round.before)) state_ = State::InDoubt;
    latest = place;
  } else if (place.exists() && latest.same_round(place) && latest.rank < 0) {
    latest.rank = place.rank;  // its assignment came later
  }
  auto successors = round.latest.exists() ? round.successors : successors_;
  for (Successor& successor : successors)
    successor.self =
        successor.address == config_.address && successor.port == config_.successor_port;
  if (latest == vote_.latest && successors == successors_) return;
  vote_.latest = latest;
  successors_ = std::move(successors);
  outbox_.push(VoteAction{vote_, successors_});
  keep_history();
}

// A few of all nodes do: at a large job it would cost the store much to tell it to each.
void MemberVote::keep_history() {
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
void MemberVote::take_history(WatchId watch, const std::optional<std::string>& value) {
  if (history_watch_ == 0 || watch != history_watch_ || !value) return;
  if (auto history = decode_history(*value)) history_ = std::move(*history);
}

}  // namespace drun::rendezvous
