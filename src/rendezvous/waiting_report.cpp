#include "rendezvous/waiting_report.hpp"

#include <chrono>
#include <utility>

#include "rendezvous/messages.hpp"

namespace drun::rendezvous {

WaitingReport::State WaitingReport::state(const View& view) const {
  if (!view.ending && view.waiting_since) return State::Waiting;
  if (!view.ending && view.spare) return State::Spare;
  return shown_.empty() ? State::Nothing : State::Withdrawn;
}

void WaitingReport::look(const View& view, Time now) {
  const State is = state(view);
  if (is == State::Nothing) return;
  if (is == State::Withdrawn) return show("");
  if (is == State::Waiting && now < *view.waiting_since + kPeriod) {
    next_ = *view.waiting_since + kPeriod;
    return;
  }
  if (now < next_) return;
  next_ = now + kPeriod;
  if (is == State::Waiting) return show(waiting_line(view, now));
  const bool joins_others = config_.max_nodes > 1;
  // The other may be a dead agent whose session lives on for a moment.
  std::string text =
      joins_others ? spare_line(view) : "not started yet: " + foreign_job_text(config_);
  if (text != shown_) show(std::move(text), joins_others);
}

std::optional<Time> WaitingReport::next_deadline(const View& view) const {
  if (view.ending || state(view) == State::Nothing) return std::nullopt;
  return next_;
}

std::string WaitingReport::spare_line(const View& view) const {
  const int nodes = view.round->nodes;
  const char* const until = nodes >= config_.max_nodes ? ", this one waits to be needed"
                            : config_.node_step > 1 ? ", this one waits until a whole step is there"
                            : config_.resize == Resize::Now
                                ? ", this one is about to join"
                                : ", this one joins at the next restart";
  return "spare: the job runs with " + std::to_string(nodes) + " of " + nodes_text(config_) + until;
}

std::string WaitingReport::waiting_line(const View& view, Time now) const {
  const auto elapsed = std::chrono::duration_cast<Milliseconds>(now - *view.waiting_since);
  std::string text = std::string(kStoreIsThere) + "; which of " + nodes_text(config_) +
                     " are, no other agent has said yet";
  if (!view.up) {
    text = "for the store to come back" + (view.trouble->empty() ? "" : ": " + *view.trouble);
  } else if (view.state != nullptr) {
    text = waiting_text(*view.state, config_, now);
  } else if (view.round != nullptr && !view.round->waiting.empty()) {
    text = view.round->waiting;
  }
  std::string head = "waiting " + clock_text(elapsed);
  if (view.up) head += left_text(elapsed, config_.join_timeout);
  return head + ": " + with_place(std::move(text), config_);
}

void WaitingReport::show(std::string text, bool spare) {
  shown_ = text;
  outbox_.push(ProgressAction{std::move(text), spare});
}

}  // namespace drun::rendezvous
