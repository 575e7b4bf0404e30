#include "rendezvous/store_link.hpp"

#include <algorithm>
#include <utility>

namespace drun::rendezvous {

StoreLink::StoreLink(Milliseconds keep_alive, Time now)
    : keep_alive_(keep_alive), up_since_(now), lost_since_(now), last_touch_(now) {}

// next_touch() never lets this much time pass: only a suspension does.
bool StoreLink::note_time(Time now) {
  const auto gap = now - last_touch_;
  if (up() && gap > keep_alive_) suspended_ = Suspension{last_touch_, now};
  last_touch_ = now;
  return up() && gap > keep_alive_ / 2;
}

void StoreLink::on_up(bool new_session, Time now) {
  if (new_session || !up()) up_since_ = now;
  state_ = State::Up;
}

void StoreLink::on_down(std::string detail, Milliseconds silent, Time now) {
  detail_ = std::move(detail);
  if (!up()) return;
  state_ = State::Lost;
  // If this process was suspended, the others have heard nothing from it since then: the keep-alive
  // limit counts from there, not from when it woke up and noticed.
  lost_since_ = now - silent;
  if (suspended_ && now - suspended_->until < keep_alive_)
    lost_since_ = std::min(lost_since_, suspended_->from);
}

std::optional<Time> StoreLink::next_touch() const {
  return up() ? std::optional(last_touch_ + keep_alive_ / 3) : std::nullopt;
}

}  // namespace drun::rendezvous
