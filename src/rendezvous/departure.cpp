#include "rendezvous/departure.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/stop_signal.hpp"

namespace drun::rendezvous {
namespace {

// After a request to stop, an agent waits for the leader to end the job: this much longer than its
// lease, because the leader may just have died. Its session then lives for the keep-alive limit and
// two seconds, and the next one must be elected and answer. If the store has been lost, that is the
// time to find the next one, too: an agent that left before would take its vote with it, and nobody
// would know of the request.
constexpr Milliseconds kStopWait{5'000};
// If no other store can come, the request can only reach the others if the link comes back by
// itself.
constexpr Milliseconds kStopWaitWhileDown{1'000};

}  // namespace

void Departure::ask_to_stop(StopRequest request, Time now) {
  if (asked()) return;
  asked_ = Asked::Stop;
  request_ = std::move(request);
  asked_since_ = now;
  if (staying()) state_ = State::AskedToStop;
}

void Departure::ask_to_leave(StopRequest request, Time now) {
  if (asked()) return;
  asked_ = Asked::Leave;
  request_ = std::move(request);
  asked_since_ = now;
  if (staying()) state_ = State::AskedToLeave;
}

void Departure::refuse(std::string reason, bool unfit) {
  if (!refused_) refused_ = Refusal{std::move(reason), unfit};
}

void Departure::give_up(std::string reason) {
  if (!given_up_) given_up_ = std::move(reason);
}

void Departure::end(Outcome outcome) {
  ending_ = std::move(outcome);
  state_ = State::Ending;
}

// An agent that never held a rank in a one-node job belongs to a different job that reused the id:
// the outcome is not its own.
bool Departure::is_foreign_job(const Surroundings& around) const {
  const bool ran = outcome_->end == End::Success || outcome_->end == End::Failure;
  return config_.max_nodes == 1 && !around.had_place && ran;
}

bool Departure::advance(const Surroundings& around, Time now) {
  if (outcome_) {
    end(is_foreign_job(around) ? Outcome{End::Refused, kDrunFailed, foreign_job_text(config_), {}}
                               : *outcome_);
  } else if (!ending_ && refused_) {
    end({End::Refused, refused_->unfit ? kUnfit : kDrunFailed, refused_->reason, std::nullopt});
  } else if (!ending_ && stop_asked()) {
    return find_stop(around, now);
  } else if (!ending_ && leave_asked()) {
    return find_leave(around, now);
  }
  return false;
}

bool Departure::find_stop(const Surroundings& around, Time now) {
  const bool told = state_ == State::StopTold;
  // Once asked, it waits for the answer: a round that began meanwhile makes no spare of it.
  const bool ask = around.was_up && !failed_ && !given_up_ && (told || around.stop_ends_job);
  // If the link is down, the first that the next store is told.
  if (ask) state_ = State::StopTold;
  if (!ask || now >= asked_since_ + stop_wait(around))
    end({End::Stopped, request_.exit_code, request_.reason, std::nullopt});
  return ask && !told;
}

// It goes when its workers are gone and the store knows of it all.
bool Departure::find_leave(const Surroundings& around, Time now) {
  const bool news = std::exchange(state_, State::LeaveTold) != State::LeaveTold;
  if (around.holds_workers) return news;
  if (!unheld_since_) unheld_since_ = now;
  const bool written = around.written && !news;
  const bool in_touch = around.was_up && !failed_;
  if (in_touch && now < (written ? leave_ends(around) : *unheld_since_ + stop_wait(around)))
    return news;
  end({End::Stopped, request_.exit_code, request_.reason + "; this node leaves the job",
       std::nullopt});
  ending_->leaves = true;
  return news;
}

// The host waits even while its link is down: the store is its own, so the link comes back, and the
// others learn of the stop from that store only.
Milliseconds Departure::stop_wait(const Surroundings& around) const {
  return around.may_be_heard ? config_.keep_alive + kStopWait : kStopWaitWhileDown;
}

// A leader stays for as long as others may be told to go, too: if all are, it ends the job.
Time Departure::leave_ends(const Surroundings& around) const {
  if (!around.leads_until) return asked_since_;
  return std::max(*around.leads_until, asked_since_ + kLeaveWindow);
}

std::optional<Time> Departure::refused_until(const Surroundings& around) const {
  return refused_ && !outcome_ && !around.holds_workers && around.up ? around.leads_until
                                                                     : std::nullopt;
}

bool Departure::has_left(const Surroundings& around, Time now) const {
  if (const auto until = refused_until(around)) return now >= *until;
  return leave_asked() && !around.holds_workers && now >= leave_ends(around);
}

const std::string& Departure::reason() const {
  return asked() ? request_.reason : ending_->text;
}

// The signal that an agent of the job received; its exit code is 128 + the signal.
int Departure::stop_signal() const {
  if (asked()) return requested_signal(request_.exit_code);
  const bool told = ending_ && ending_->end == End::Stopped;
  return told ? requested_signal(ending_->exit_code) : 0;
}

// Out of touch with the store there is no time for a grace; a node that gave up by itself, or was
// told to by the leader, has that time.
bool Departure::is_hurried() const {
  return ending_ && ending_->end == End::StoreLost && !given_up_ && !outcome_;
}

std::optional<Time> Departure::next_deadline(const Surroundings& around) const {
  if (ending_) return refused_until(around);
  if (stop_asked()) return asked_since_ + stop_wait(around);
  if (!leave_asked() || !unheld_since_) return std::nullopt;
  return around.written ? leave_ends(around) : *unheld_since_ + stop_wait(around);
}

}  // namespace drun::rendezvous
