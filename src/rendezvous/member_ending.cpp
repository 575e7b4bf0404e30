// MemberAgent: how an agent's part in the job ends.
#include <algorithm>

#include "rendezvous/member.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"

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
// The leader's message about a time-out names who is missing, so an agent gives it this long before
// it gives up by itself.
constexpr Milliseconds kLeaderMargin{10'000};

}  // namespace

// Whether a request to stop this agent ends the job for all. Before the first round it does on any
// node. Later only on a node of the round: a spare or a newcomer just leaves. On a host whose store
// nobody succeeds it always does.
bool MemberAgent::stop_ends_job() const {
  if (carries_job() || !round_.document || round_.document->ran == 0) return true;
  return last_place_ == round_.document->ran;
}

// The host waits even while its link is down: the store is its own, so the link comes back, and the
// others learn of the stop from that store only.
Milliseconds MemberAgent::stop_wait() const {
  const bool may_be_heard = up() || document_.is_host || looks_for_successor();
  return may_be_heard ? config_.keep_alive + kStopWait : kStopWaitWhileDown;
}

// An agent that never held a rank in a one-node job belongs to a different job that reused the id:
// the outcome is not its own.
bool MemberAgent::is_foreign_job() const {
  const bool ran = outcome_->end == End::Success || outcome_->end == End::Failure;
  return config_.max_nodes == 1 && last_place_ == 0 && ran;
}

void MemberAgent::find_ending(Time now) {
  if (outcome_) {
    ending_ = is_foreign_job() ? Outcome{End::Refused, kDrunFailed, foreign_job_text(config_), {}}
                               : outcome_;
    return;
  }
  if (ending_) return;
  if (refusal_) {
    ending_ = Outcome{End::Refused, refusal_->unfit ? kUnfit : kDrunFailed, refusal_->reason,
                      std::nullopt};
    return;
  }
  if (stop_) return find_stop(now);
  if (leave_) return find_leave(now);
  ending_ = trouble_outcome(now);
}

void MemberAgent::find_stop(Time now) {
  // Once asked, it waits for the answer: a round that began meanwhile makes no spare of it.
  const bool ask = was_up() && !failed_ && !given_up_ && (document_.stop || stop_ends_job());
  if (ask && !document_.stop) {  // if the link is down, the first that the next store is told
    document_.stop = stop_;
    dirty_ = true;
  }
  if (!ask || now >= stop_since_ + stop_wait())
    ending_ = Outcome{End::Stopped, stop_->exit_code, stop_->reason, std::nullopt};
}

// It goes when its workers are gone and the store knows of it all.
void MemberAgent::find_leave(Time now) {
  if (!document_.leave) {
    document_.leave = leave_;
    dirty_ = true;
  }
  if (held_ != 0) return;
  if (!unheld_since_) unheld_since_ = now;
  const bool in_touch = was_up() && !failed_;
  if (in_touch && now < (is_said() ? leave_ends() : *unheld_since_ + stop_wait())) return;
  ending_ = Outcome{End::Stopped, leave_->exit_code, leave_->reason + "; this node leaves the job",
                    std::nullopt};
  ending_->leaves = true;
}

// A leader stays for as long as others may be told to go, too: if all are, it ends the job.
Time MemberAgent::leave_ends() const {
  if (!leads_until_) return leave_since_;
  return std::max(*leads_until_, leave_since_ + kLeaveWindow);
}

// So does one that is refused. It alone knows of those that were told and are gone.
std::optional<Time> MemberAgent::refused_until() const {
  return refusal_ && !outcome_ && held_ == 0 && up() ? leads_until_ : std::nullopt;
}

bool MemberAgent::has_left(Time now) const {
  if (const auto until = refused_until()) return now >= *until;
  return leave_ && held_ == 0 && now >= leave_ends();
}

std::optional<Outcome> MemberAgent::trouble_outcome(Time now) const {
  std::string detail = detail_.empty() ? "" : ": " + detail_;
  // An agent that did not run while the job ended finds nobody any more who could tell.
  if (document_.succeeded > 0 && document_.succeeded == last_place_)
    detail += "; all workers of this node had succeeded, how the job ended is not known";
  if (failed_) return Outcome{End::StoreLost, kDrunFailed, *failed_, {}};
  if (given_up_) return Outcome{End::StoreLost, kDrunFailed, *given_up_, {}};
  if (lease_over_ && !may_come_back()) {
    const bool unsaid = up() && unknown_;
    const std::string why = unsaid && rejections_.any() ? ": " + rejections_.text() : detail;
    const std::string what = unsaid ? "unknown to the store" : "out of touch with the store";
    return Outcome{End::StoreLost,
                   kDrunFailed,
                   what + " for longer than the lease of " + duration_text(config_.keep_alive) +
                       ", so the workers were killed" + why,
                   {}};
  }
  if (touch_ == Touch::Lost && now >= out_of_touch_since_ + patience_without_store()) {
    const auto silent = std::chrono::duration_cast<Milliseconds>(now - out_of_touch_since_);
    return Outcome{End::StoreLost,
                   kDrunFailed,
                   "out of touch with the store for " + duration_text(silent) +
                       (looks_for_successor()
                            ? ", and found no other that has a majority of the nodes"
                            : ", longer than the lease of " + duration_text(config_.keep_alive)) +
                       detail,
                   {}};
  }
  if (!was_up() && now >= *waiting_since_ + config_.join_timeout)
    return Outcome{
        End::Timeout,
        kTimeLimit,
        "no connection to the store within " + duration_text(config_.join_timeout) + detail,
        {}};
  if (up() && waiting() && now >= patience_ends())
    return Outcome{End::Timeout,
                   kTimeLimit,
                   "no round of the job began within " + duration_text(config_.join_timeout) +
                       ", and no agent leads it that could say who is missing",
                   {}};
  return std::nullopt;
}

// Who knows of successors looks for them after its workers have ended with their lease.
Milliseconds MemberAgent::patience_without_store() const {
  return looks_for_successor() ? std::max(config_.search_timeout, config_.keep_alive)
                               : config_.keep_alive;
}

Time MemberAgent::patience_ends() const {
  return std::max(*waiting_since_, word_of_leader_) + config_.join_timeout + kLeaderMargin;
}

void MemberAgent::leave(Time now) {
  if (!ending_ || held_ != 0) return;
  if (const auto until = refused_until(); until && now < *until) return;
  // The store ends with this process: the others need it until they have left.
  if (document_.is_host && outcome_ && !failed_) {
    if (!closing_since_) {
      closing_since_ = now;
      closing_watch_ = outbox_.watch(keys_.members, true);
    }
    // At a later store some nodes of the round may still be on their way to it.
    const bool alone = others_ && others_->empty() && !others_come_until_;
    if (!alone && now < *closing_since_ + config_.close_timeout) return;
  }
  finished_ = true;
  outbox_.push(FinishAction{*ending_});
}

}  // namespace drun::rendezvous
