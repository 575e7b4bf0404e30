#include "launcher/output/line_scheduler.hpp"

#include <algorithm>

#include "base/deadline.hpp"

namespace drun::launcher {

void LineScheduler::join(Slot& slot, int rank) {
  slot = Slot{};
  slot.rank = rank;
  if (rank != kNobody) ++streams_of_rank_[rank];
}

void LineScheduler::uncount(Slot& slot) {
  const auto rank = streams_of_rank_.find(slot.rank);
  if (!slot.ended && rank != streams_of_rank_.end() && --rank->second == 0)
    streams_of_rank_.erase(rank);
}

void LineScheduler::leave(Slot& slot) {
  uncount(slot);
  std::erase(lines_, &slot);
  std::erase(partials_, &slot);
  slot.has_lines = slot.has_partial = false;
  if (open_line_owner_ == &slot) {
    open_line_owner_ = nullptr;
    owner_left_ = line_.open;
  }
}

void LineScheduler::offer_lines(Slot& slot, bool begins_with_return, Time now) {
  withdraw_partial(slot);
  if (slot.has_lines) return;
  slot.has_lines = true;
  slot.begins_with_return = begins_with_return;
  slot.since = now;
  lines_.push_back(&slot);
}

void LineScheduler::offer_partial(Slot& slot, bool begins_with_return, bool full_buffer, Time now) {
  if (slot.has_lines) return;  // it comes after them, and is offered again then
  if (!slot.has_partial) {
    slot.has_partial = true;
    slot.begins_with_return = begins_with_return;
    slot.since = now;
    partials_.push_back(&slot);
  }
  // A stream that stopped exactly at the end of its stdio buffer has more to come, even if it owns
  // the open line or shows a bar.
  if (slot.ended || slot.full || one_rank())
    slot.due = now;  // nothing more comes, or there is no other line that it could cut
  else if (full_buffer)
    slot.due = slot.since + delays_.full_buffer;
  else if (open_line_owner_ == &slot || slot.begins_with_return)
    slot.due = now;
  else
    slot.due = slot.since + delays_.hold;
}

void LineScheduler::withdraw_partial(Slot& slot) {
  if (!slot.has_partial) return;
  slot.has_partial = false;
  std::erase(partials_, &slot);
}

void LineScheduler::end(Slot& slot) {
  uncount(slot);
  slot.ended = true;
  // Nothing can complete its line any more, so it is not held back.
  slot.due = Time{};
}

// Whole lines go before unfinished ones. Of the streams with lines only the first counts, so that
// their lines stay in order of arrival.
LineScheduler::Slot* LineScheduler::first_waiting(Time now) const {
  const auto may_write = [&](const Slot& slot) {
    return open_line_owner_ == nullptr || may_cut_from(slot) <= now;
  };
  if (!lines_.empty() && may_write(*lines_.front())) return lines_.front();
  for (Slot* slot : partials_)
    if (slot->due <= now && may_write(*slot)) return slot;
  return nullptr;
}

// From when on `slot` may write although another stream's line is open. Precondition: there is an
// owner.
LineScheduler::Time LineScheduler::may_cut_from(const Slot& slot) const {
  if (open_line_owner_->ended || line_.at_line_start) return Time{};
  // A progress bar is shown again in a moment, so whatever cuts into it costs nothing.
  if (line_.has_return && (slot.has_lines || slot.begins_with_return)) return Time{};
  return std::min(owner_wrote_ + delays_.quiet, std::max(slot.since, slot.due) + delays_.patience);
}

LineScheduler::Turn LineScheduler::give_turn(Slot& slot, bool newline_first) {
  if (slot.has_lines) lines_.pop_front();
  withdraw_partial(slot);
  slot.has_lines = false;
  return Turn{&slot, newline_first};
}

std::optional<LineScheduler::Turn> LineScheduler::next(Time now) {
  if (open_line_owner_ != nullptr) {
    // The owner goes first, so that its line is not cut without need.
    if (open_line_owner_->has_lines) {
      std::erase(lines_, open_line_owner_);
      lines_.push_front(open_line_owner_);
      return give_turn(*open_line_owner_, false);
    }
    if (open_line_owner_->has_partial && open_line_owner_->due <= now)
      return give_turn(*open_line_owner_, false);
  }
  Slot* slot = first_waiting(now);
  if (slot == nullptr) return std::nullopt;
  // A newline keeps two lines apart. None is wanted if the new text overwrites the open line, if
  // that line is not text, or if a single rank mixes its own stdout and stderr: that looks as it
  // would without drun.
  const bool over_bar = line_.at_line_start || (line_.has_return && slot->begins_with_return);
  const bool own = slot->rank == last_rank_ && one_rank();
  const bool unfinished = open_line_owner_ != nullptr || owner_left_;
  const bool newline = unfinished && !line_.too_long && !over_bar && !own;
  if (open_line_owner_ != nullptr) open_line_owner_->was_cut = true;
  open_line_owner_ = nullptr;
  return give_turn(*slot, newline);
}

void LineScheduler::written(Slot& slot, LineState line, Time now) {
  slot.was_cut = false;
  line_ = line;
  owner_left_ = false;
  open_line_owner_ = line.open ? &slot : nullptr;
  owner_wrote_ = now;
  last_rank_ = slot.rank;
}

std::optional<LineScheduler::Time> LineScheduler::deadline(Time now) const {
  if (open_line_owner_ != nullptr && open_line_owner_->has_lines) return now;
  EarliestDeadline next;
  const auto include = [&](const Slot& slot) {
    Time time = slot.has_lines ? Time{} : slot.due;
    if (open_line_owner_ != nullptr && open_line_owner_ != &slot)
      time = std::max(time, may_cut_from(slot));
    next.include(std::max(time, now));
  };
  if (!lines_.empty()) include(*lines_.front());
  for (const Slot* slot : partials_)
    include(*slot);
  return next.time();
}

}  // namespace drun::launcher
