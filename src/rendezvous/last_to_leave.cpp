#include "rendezvous/last_to_leave.hpp"

#include <utility>

namespace drun::rendezvous {

LastToLeave::LastToLeave(Milliseconds limit, std::string ticket, const Keys& keys, Outbox& outbox)
    : limit_(limit), ticket_(std::move(ticket)), keys_(keys), outbox_(outbox) {}

void LastToLeave::begin(Time now) {
  if (begun_) return;
  begun_ = now;
  watch_ = outbox_.watch(keys_.members, true);
}

void LastToLeave::on_snapshot(const WatchSnapshot& snapshot) {
  if (!begun_ || snapshot.watch != watch_) return;
  others_.emplace();
  for (const auto& entry : snapshot.entries)
    others_->insert(entry.key);
  others_->erase(keys_.member(ticket_));
}

void LastToLeave::on_changes(const WatchChanges& changes) {
  if (!begun_ || changes.watch != watch_ || !others_) return;
  for (const auto& [key, value] : changes.changes) {
    if (key == keys_.member(ticket_)) continue;
    if (value) {
      others_->insert(key);
    } else {
      others_->erase(key);
    }
  }
}

LastToLeave::State LastToLeave::state() const {
  if (!begun_) return State::Open;
  if (!others_) return State::Asking;
  return others_->empty() ? State::Alone : State::Waiting;
}

std::optional<Time> LastToLeave::limit() const {
  return begun_ ? std::optional(*begun_ + limit_) : std::nullopt;
}

}  // namespace drun::rendezvous
