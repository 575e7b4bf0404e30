// MemberAgent: how an agent's part in the job ends.
#include <algorithm>

#include "rendezvous/member.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

// The leader's message about a time-out names who is missing, so an agent gives it this long before
// it gives up by itself.
constexpr Milliseconds kLeaderMargin{10'000};
// For the store to take the word of the end: nothing depends on it but a report.
constexpr Milliseconds kEndLimit{1'000};

}  // namespace

// Whether a request to stop this agent ends the job for all. Before the first round it does on any
// node. Later only on a node of the round: a spare or a newcomer just leaves. On a host whose store
// nobody succeeds it always does.
bool MemberAgent::stop_ends_job() const {
  if (carries_job() || !round_.document || round_.document->ran == 0) return true;
  return last_place_ == round_.document->ran;
}

Departure::Surroundings MemberAgent::surroundings() const {
  Departure::Surroundings around;
  around.up = link_.up();
  around.was_up = link_.was_up();
  around.holds_workers = workers_.any();
  around.written = link_.up() && entry_.written();
  around.may_be_heard = link_.up() || document_.is_host || vote_.knows_successors();
  around.stop_ends_job = stop_ends_job();
  around.had_place = last_place_ != 0;
  around.leads_until = leads_until_;
  return around;
}

void MemberAgent::find_ending(Time now) {
  if (departure_.advance(surroundings(), now)) {
    (departure_.stop_asked() ? document_.stop : document_.leave) = departure_.request();
    entry_.change();
  }
  if (gathers()) last_to_leave_.listen();
  if (!departure_.staying()) return;
  if (auto trouble = trouble_outcome(now)) departure_.end(std::move(*trouble));
}

std::optional<Outcome> MemberAgent::trouble_outcome(Time now) const {
  std::string detail = trouble().empty() ? "" : ": " + trouble();
  // An agent that did not run while the job ended finds nobody any more who could tell.
  if (document_.succeeded > 0 && document_.succeeded == last_place_)
    detail += "; all workers of this node had succeeded, how the job ended is not known";
  if (const auto& why = departure_.failed()) return Outcome{End::StoreLost, kDrunFailed, *why, {}};
  if (const auto& why = departure_.given_up())
    return Outcome{End::StoreLost, kDrunFailed, *why, {}};
  if (lease_.over() && !may_come_back()) {
    const bool unsaid = up() && lease_.in_doubt();
    const std::string why = unsaid && rejected() ? ": " + entry_.rejections().text() : detail;
    const std::string what = unsaid ? "unknown to the store" : "out of touch with the store";
    return Outcome{End::StoreLost,
                   kDrunFailed,
                   what + " for longer than the lease of " + duration_text(config_.keep_alive) +
                       ", so the workers were killed" + why,
                   {}};
  }
  if (link_.state() == StoreLink::State::Lost &&
      now >= link_.lost_since() + patience_without_store()) {
    const auto silent = std::chrono::duration_cast<Milliseconds>(now - link_.lost_since());
    return Outcome{End::StoreLost,
                   kDrunFailed,
                   "out of touch with the store for " + duration_text(silent) +
                       (vote_.knows_successors()
                            ? ", and found no other that has a majority of the nodes"
                            : ", longer than the lease of " + duration_text(config_.keep_alive)) +
                       detail,
                   {}};
  }
  if (!link_.was_up() && now >= *waiting_since_ + config_.join_timeout)
    return Outcome{
        End::Timeout,
        kTimeLimit,
        "no connection to the store within " + duration_text(told_join_timeout(config_)) + detail,
        {}};
  if (up() && waiting() && now >= patience_ends())
    return Outcome{End::Timeout,
                   kTimeLimit,
                   "no round of the job began within " + duration_text(told_join_timeout(config_)) +
                       ", and no agent leads it that could say who is missing",
                   {}};
  return std::nullopt;
}

// Who knows of successors looks for them after its workers have ended with their lease.
Milliseconds MemberAgent::patience_without_store() const {
  return vote_.knows_successors() ? std::max(config_.search_timeout, config_.keep_alive)
                                  : config_.keep_alive;
}

Time MemberAgent::patience_ends() const {
  return std::max(*waiting_since_, word_of_leader_) + config_.join_timeout + kLeaderMargin;
}

// The job has not succeeded, and this agent hears what the others say of their workers.
bool MemberAgent::gathers() const {
  return (document_.is_host || gathers_) && departure_.ending() && departure_.job_over() &&
         departure_.outcome().end != End::Success;
}

// The store is to take what there is to tell before this agent goes. The host hears the others: a
// store that could have successors and has none is no node's.
bool MemberAgent::tells_end(Time now) {
  const bool heard =
      config_.ends_are_heard && (config_.successors == 0 || document_.latest.exists());
  const bool news = heard && departure_.job_over() && departure_.outcome().end != End::Success &&
                    !gathers() && !end_.empty() && end_round_ == ran_;
  if (!news || !up() || !entry_.was_written()) return false;
  if (!end_until_) {
    end_until_ = now + kEndLimit;
    document_.end = end_;
    entry_.change();
  }
  return !entry_.written() && now < *end_until_;
}

void MemberAgent::leave(Time now) {
  if (!ending() || workers_.any()) return;
  if (const auto until = departure_.refused_until(surroundings()); until && now < *until) return;
  if (tells_end(now)) return;
  // The store ends with this process: the others need it until they have left.
  const bool last = (document_.is_host && departure_.job_over()) || gathers();
  if (last && !departure_.failed()) {
    last_to_leave_.begin(now);
    // At a later store some nodes of the round may still be on their way to it.
    const bool alone = last_to_leave_.state() == LastToLeave::State::Alone && !others_come_until_;
    if (!alone && !last_to_leave_.limit_over(now)) return;
  }
  departure_.go();
  outbox_.push(FinishAction{departure_.outcome(), last_to_leave_.ends()});
}

}  // namespace drun::rendezvous
