#include "launcher/output/output_turns.hpp"

#include <algorithm>

namespace drun::launcher {

void LineTurns::join(Seat& seat, int owner) {
  seat = Seat{};
  seat.owner = owner;
  if (owner != kNobody) ++owners_[owner];
}

void LineTurns::release(Seat& seat) {
  const auto owner = owners_.find(seat.owner);
  if (!seat.ended && owner != owners_.end() && --owner->second == 0) owners_.erase(owner);
}

void LineTurns::leave(Seat& seat) {
  release(seat);
  std::erase(lines_, &seat);
  std::erase(partials_, &seat);
  seat.has_lines = seat.has_partial = false;
  if (holder_ == &seat) {
    holder_ = nullptr;
    orphaned_ = left_.open;
  }
}

void LineTurns::offer_lines(Seat& seat, bool returns, Time now) {
  withdraw_partial(seat);
  if (seat.has_lines) return;
  seat.has_lines = true;
  seat.returns = returns;
  seat.since = now;
  lines_.push_back(&seat);
}

void LineTurns::offer_partial(Seat& seat, bool returns, bool full_buffer, Time now) {
  if (seat.has_lines) return;  // comes after them; offered again then
  if (!seat.has_partial) {
    seat.has_partial = true;
    seat.returns = returns;
    seat.since = now;
    partials_.push_back(&seat);
  }
  if (seat.ended || alone())
    seat.due = now;
  else if (full_buffer)
    seat.due = seat.since + settings_.full_buffer;
  else if (holder_ == &seat || seat.returns)
    seat.due = now;
  else
    seat.due = seat.since + settings_.hold;
}

void LineTurns::withdraw_partial(Seat& seat) {
  if (!seat.has_partial) return;
  seat.has_partial = false;
  std::erase(partials_, &seat);
}

void LineTurns::end(Seat& seat) {
  release(seat);
  seat.ended = true;
  seat.due = Time{};
}

LineTurns::Seat* LineTurns::first_waiting(Time now) const {
  const auto may_write = [&](const Seat& seat) {
    return holder_ == nullptr || may_cut(seat) <= now;
  };
  if (!lines_.empty() && may_write(*lines_.front())) return lines_.front();
  for (Seat* seat : partials_)
    if (seat->due <= now && may_write(*seat)) return seat;
  return nullptr;
}

// From when on `seat` may write although another stream's line is unfinished.
LineTurns::Time LineTurns::may_cut(const Seat& seat) const {
  if (holder_->ended || left_.at_margin) return Time{};
  if (left_.returned && (seat.has_lines || seat.returns)) return Time{};
  return std::min(holder_wrote_ + settings_.quiet,
                  std::max(seat.since, seat.due) + settings_.patience);
}

LineTurns::Grant LineTurns::grant(Seat& seat, bool newline_first) {
  if (seat.has_lines) lines_.pop_front();
  withdraw_partial(seat);
  seat.has_lines = false;
  return Grant{&seat, newline_first};
}

std::optional<LineTurns::Grant> LineTurns::next(Time now) {
  if (holder_ != nullptr) {
    if (holder_->has_lines) {
      std::erase(lines_, holder_);
      lines_.push_front(holder_);
      return grant(*holder_, false);
    }
    if (holder_->has_partial && holder_->due <= now) return grant(*holder_, false);
  }
  Seat* seat = first_waiting(now);
  if (seat == nullptr) return std::nullopt;
  const bool over_bar = left_.at_margin || (left_.returned && seat->returns);
  const bool own = seat->owner == line_owner_ && alone();
  const bool newline = (holder_ != nullptr || orphaned_) && !left_.endless && !over_bar && !own;
  if (holder_ != nullptr) holder_->cut = true;
  holder_ = nullptr;
  orphaned_ = false;
  return grant(*seat, newline);
}

void LineTurns::written(Seat& seat, Left left, Time now) {
  seat.cut = false;
  left_ = left;
  orphaned_ = false;
  holder_ = left.open ? &seat : nullptr;
  holder_wrote_ = now;
  line_owner_ = seat.owner;
}

std::optional<LineTurns::Time> LineTurns::deadline(Time now) const {
  if (holder_ != nullptr && holder_->has_lines) return now;
  std::optional<Time> earliest;
  const auto consider = [&](Time time) {
    if (!earliest || time < *earliest) earliest = time;
  };
  const auto consider_seat = [&](const Seat& seat) {
    Time time = seat.has_lines ? Time{} : seat.due;
    if (holder_ != nullptr && holder_ != &seat) time = std::max(time, may_cut(seat));
    consider(time);
  };
  if (!lines_.empty()) consider_seat(*lines_.front());
  for (const Seat* seat : partials_)
    consider_seat(*seat);
  if (earliest) earliest = std::max(*earliest, now);
  return earliest;
}

}  // namespace drun::launcher
