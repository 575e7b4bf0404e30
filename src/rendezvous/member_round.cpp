// MemberAgent: how it follows the rounds, and starts and stops its workers.
#include <optional>
#include <string>
#include <utility>

#include "rendezvous/member.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {

// Workers may run only in the round that the store calls running; anything else stops them. If the
// store was set back or emptied, a leader restores the round from what the members claim: that
// takes up to two keep-alive limits, and healthy workers must not be stopped meanwhile.
void MemberAgent::keep_or_stop(Time now) {
  const auto& round = round_.document;
  if (!workers_.any()) return;
  const bool behind = is_behind(round, workers_.round());
  if (behind && now < link_.up_since() + config_.keep_alive * 2) return;
  if (!round) return stop_workers("the store has lost the job", false);
  if (round->phase == Phase::Running && round->number == workers_.round()) return;
  // Workers that have succeeded are not stopped: what is left of them is only cleaned up.
  const char* ended = workers_.succeeded() ? "" : "the job has ended";
  const bool known =
      !round->reason.empty() && (round->phase == Phase::Stopping || round->phase == Phase::Closed);
  stop_workers(known                           ? round->reason
               : round->phase == Phase::Closed ? ended
                                               : "the job went on without this node",
               false);
}

void MemberAgent::tell_of_hang() {
  const auto& round = round_.document;
  const int held = workers_.round();
  const bool stalls = workers_.any() && document_.stalled == held && !workers_.stop_asked();
  const bool hung = stalls && round && round->hung && round->number == held;
  if (std::exchange(hung_, hung) || !hung) return;
  outbox_.push(HangAction{});
}

void MemberAgent::follow(Time now) {
  if (!departure_.staying()) return stop_workers(departure_.reason(), departure_.is_hurried());
  // The guardian kills them, whatever else is known; then this node has left the round.
  if (lease_.over() && workers_.need_a_lease())
    stop_workers("out of touch with the store for longer than the lease of " +
                     duration_text(config_.keep_alive),
                 true);
  const bool known = round_.current() && assignment_.current();
  if (!up() || (!known && !round_.suspect())) return;
  keep_or_stop(now);
  if (!known) return;
  tell_of_hang();

  const auto& round = round_.document;
  const bool over = round && is_alive(round->phase);
  const bool waiting = !workers_.any() && !over;
  if (!waiting) {
    waiting_since_.reset();
  } else if (!waiting_since_) {
    waiting_since_ = now;
  }
  if (!round || workers_.any()) return;

  // A round that is being stopped, or is over, will not be started here any more. Saying so lets
  // the leader begin the next one without waiting for us.
  const bool current_is_over = round->phase == Phase::Gathering || round->phase == Phase::Stopping;
  const int over_until = current_is_over ? round->number : round->number - 1;
  if (last_place_ <= over_until) note_left(last_place_);

  if (!assignment_.document || assignment_.document->assignment.round != round->number) return;
  const auto& place = assignment_.document->assignment;
  if (round->phase == Phase::Preparing && !assignment_.document->go && preparing_ != place.round) {
    preparing_ = place.round;
    outbox_.push(PrepareWorkerStoreAction{place});
  }
  if (round->phase == Phase::Running && assignment_.document->go && document_.left < place.round &&
      may_start(now)) {
    workers_.start(place.round);
    lease_.on_new_workers();
    document_.claim = place;
    if ((ran_ == place.round ? ran_before_ : ran_) > place_before_)
      outbox_.log(taken_in_text(config_.host, place));
    outbox_.push(StartAction{place});
  }
}

// If the store were lost now: who begins the next round elsewhere must know of this one, or count
// this node among those of an earlier one.
bool MemberAgent::may_start(Time now) const {
  return lease_.may_start(now) && vote_.may_start(*round_.document);
}

bool MemberAgent::time_limit_over() const {
  if (departure_.stop_asked()) return departure_.request().exit_code == kTimeLimit;
  if (ending()) return is_time_limit(departure_.outcome());
  return round_.document && round_.document->cause == Cause::TimeLimit;
}

bool MemberAgent::worker_failed() const {
  if (departure_.asked()) return false;
  if (ending()) return departure_.outcome().end == End::Failure;
  return round_.document && round_.document->cause == Cause::Failure;
}

bool MemberAgent::found_hung() const {
  return !departure_.asked() && round_.document && round_.document->hung;
}

bool MemberAgent::takes_nodes_in() const {
  return !departure_.asked() && !ending() && round_.document &&
         round_.document->cause == Cause::Resize;
}

void MemberAgent::stop_workers(const std::string& reason, bool immediately) {
  if (!workers_.stop(immediately)) return;
  outbox_.push(StopAction{reason, immediately, departure_.stop_signal(), time_limit_over(),
                          worker_failed(), found_hung(), takes_nodes_in()});
}

}  // namespace drun::rendezvous
