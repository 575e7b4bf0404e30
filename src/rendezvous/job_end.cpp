#include "rendezvous/job_end.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/failure_merge.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/root_cause.hpp"
#include "rendezvous/round_end.hpp"

namespace drun::rendezvous {
namespace {

int job_exit_code(const FailureSummary& root, ExitCodePolicy policy) {
  if (!root.requeue) return kDoNotRequeue;
  if (policy == ExitCodePolicy::Highest) return std::max(root.shell_code(), root.highest_code);
  if (policy == ExitCodePolicy::LowestRank && root.lowest_rank >= 0 && root.lowest_rank < root.rank)
    return root.lowest_code;
  return root.shell_code();
}

FailureSummary root_with_others(const DecisionContext& c) {
  std::vector<const FailureSummary*> all{&c.root().summary};
  for (const Failure& failure : c.state.failures)
    if (failure.ticket != c.root().ticket) all.push_back(&failure.summary);
  return merge_failures(all);
}

// Such a node wants a look whatever became of the job.
void note_set_aside(const DecisionContext& c, Outcome& outcome) {
  for (const SetAside& each : c.decision.round.set_aside)
    if (!each.cleared) outcome.notes.push_back(each.host + " was set aside: " + each.why);
}

}  // namespace

void close(DecisionContext& c, Outcome outcome) {
  if (outcome.end != End::Failure) note_set_aside(c, outcome);
  outcome.all_heard = c.state.succession.is_later() && c.state.unheard.empty();
  c.round().phase = Phase::Closed;
  c.round().hung = false;
  if (is_time_limit(outcome)) c.round().cause = Cause::TimeLimit;
  c.round().reason = outcome.text;
  c.round().waiting.clear();
  if (outcome.exit_code != 0) {
    const Cause cause = outcome.end == End::Failure ? Cause::Failure : c.round().cause;
    c.history().stop(cause, outcome.text, c.unix_ms(c.now));
  }
  c.history().end(0, c.unix_ms(c.now));
  c.write(c.state.keys.outcome, encode(outcome));
  c.drop(c.state.keys.job);
  for (const auto& ticket : c.state.assignment_keys) {
    const auto member = c.state.members.find(ticket);
    if (member != c.state.members.end() && member->second.standing == Standing::Refused) continue;
    c.drop(c.state.keys.assignment(ticket));
    c.decision.dropped.push_back(ticket);
  }
  c.decision.outcome = std::move(outcome);
}

void close_failed(DecisionContext& c) {
  const FailureSummary root = root_with_others(c);
  Outcome outcome;
  outcome.end = End::Failure;
  outcome.exit_code = job_exit_code(root, c.config.exit_code);
  outcome.text = cause_text(root);
  if (c.state.crashes > 0 && root.rank == c.state.crash_rank && root.cause == c.state.crash_cause) {
    outcome.notes.push_back("crash loop: rank " + std::to_string(root.rank) +
                            " ended in the same way " + std::to_string(c.state.crashes + 1) +
                            " times in a row within seconds of its start");
  } else if (c.config.max_restarts > 0 && c.round().restart_count >= c.config.max_restarts) {
    outcome.notes.push_back("no restart of " + std::to_string(c.config.max_restarts) + " is left");
  } else if (c.config.max_restarts > 0 && !root.why_no_restart.empty()) {
    outcome.notes.push_back("not restarted: " + root.why_no_restart);
  }
  note_set_aside(c, outcome);
  if (!root.requeue)
    outcome.notes.push_back("--no-requeue-on: exit code " + std::to_string(kDoNotRequeue) +
                            " says that another run would fail, too");
  for (const auto& note : outcome.notes)
    outcome.text += "; " + note;
  outcome.failure = root;
  close(c, std::move(outcome));
}

bool timed_out(const DecisionContext& c) {
  return c.decision.round.phase == Phase::Gathering && c.state.waiting_since &&
         c.past(c.state.waiting_since, c.config.join_timeout);
}

void close_timed_out(DecisionContext& c) {
  std::string text = "not enough nodes within " + duration_text(told_join_timeout(c.config)) +
                     ": " + waiting_text(c.state, c.config, c.now);
  if (const auto refused = refused_text(c.state); !refused.empty()) text += "; refused: " + refused;
  text +=
      "; start drun on every node with " +
      (c.config.endpoint.empty() ? "this endpoint" : "the endpoint " + c.config.endpoint) +
      (c.config.endpoint_is_local
           ? " (which only this machine can reach: other machines need another)"
           : "") +
      (!c.config.job_flags.empty()   ? " and " + c.config.job_flags
       : c.config.run_id == kNoRunId ? ""
                                     : " and --rdzv-id " + c.config.run_id.substr(0, kMaxShownId)) +
      ", or wait longer with --rdzv-conf join_timeout=SECONDS";
  close(c, {End::Timeout, kTimeLimit, std::move(text), std::nullopt});
}

// Somebody asked for it. What made the workers stop before is worth knowing all the same; but what
// asked may have ended workers, too, and one that was just told of can be such.
void close_stopped(DecisionContext& c, const StopRequest& request) {
  Outcome outcome{End::Stopped, request.exit_code, request.reason, std::nullopt};
  const RoundDocument& round = c.state.round;
  const bool stopping = round.phase == Phase::Stopping && round.cause == Cause::Failure;
  if (!c.state.failures.empty() && (stopping || round.phase == Phase::Running)) {
    if (!stopping) choose_root(c);
    const FailureSummary& root = c.root().summary;
    const bool before = stopping || root.timed_out || root.hung;  // others were waited for
    if (before && root.shell_code() != request.exit_code) outcome.failure = root_with_others(c);
  }
  close(c, std::move(outcome));
}

void close_lost(DecisionContext& c) {
  const int most = *c.config.max_losses;
  close(c,
        {End::NodesLost, kDrunFailed,
         lost_text(c) + "; nodes were lost in " + std::to_string(most + 1) +
             (most == 0 ? " round" : " rounds") + ", --max-losses allows " + std::to_string(most),
         std::nullopt});
}

void close_brief(DecisionContext& c) {
  close(c, {End::NodesLost, kDrunFailed,
            brief_text(c) + "; that spends a restart, and --max-restarts " +
                std::to_string(c.config.max_restarts) + " leaves none",
            std::nullopt});
}

bool all_leave(const DecisionContext& c) {
  return c.state.leaving > 0 && c.state.staying == 0 && c.past(c.state.grace_until) &&
         c.state.members.contains(c.config.ticket);
}

}  // namespace drun::rendezvous
