// decide(): what to write next, and why.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/deadline.hpp"
#include "rendezvous/decision_context.hpp"
#include "rendezvous/expulsion.hpp"
#include "rendezvous/job_end.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/next_round.hpp"
#include "rendezvous/node_count.hpp"
#include "rendezvous/round_end.hpp"
#include "rendezvous/successors.hpp"

namespace drun::rendezvous {
namespace {

// Nodes that nobody sees may still have workers. The next leader, perhaps at a store that has lost
// its sessions, must know that and wait for them.
bool is_unsure(const DecisionContext& c) {
  const bool others_hold = c.decision.round.phase == Phase::Gathering && c.state.holding > 0;
  return others_hold || !c.past(c.state.unsure_until) ||
         (c.state.missing > 0 && !c.past(c.state.grace_until));
}

// When the phase that is written now began. If a round runs that the store has forgotten, it began
// earlier: the next leader needs that time for --min-runtime.
std::int64_t phase_since_ms(const DecisionContext& c) {
  const State& s = c.state;
  const RoundDocument& round = c.decision.round;
  const bool forgotten = round.phase == Phase::Running && s.round.phase == Phase::Running &&
                         round.number == s.round.number;
  return forgotten ? s.round.since_ms : c.unix_ms(c.now);
}

}  // namespace

Decision decide(const State& state, const Config& config, Time now) {
  DecisionContext c{state, config, now, {}};
  c.round() = state.round;
  if (state.round.phase == Phase::Closed) return {};
  if (state.stop) {
    close_stopped(c, *state.stop);
  } else if (all_leave(c)) {
    close_stopped(c, state.leave.value());
  } else {
    refuse_all(c);
    if (c.round().phase == Phase::Running) running(c);
    if (c.round().phase == Phase::Stopping) stopping(c);
    if (c.round().phase == Phase::Preparing) preparing(c);
    if (c.round().phase == Phase::Gathering) gathering(c);
  }
  if (is_alive(c.round().phase)) {
    for (const auto& [ticket, assignment] : state.reclaimed) {
      AssignmentDocument document{assignment, true, -1, {}};
      if (const auto slot = state.slots.find(ticket); slot != state.slots.end())
        document.host = slot->second.host;
      c.write(state.keys.assignment(ticket), encode(document));
      c.decision.reclaimed.push_back(ticket);
    }
    if (!state.reclaimed.empty() || !state.round_written) find_successors(c);
  }
  if (c.round().phase != Phase::Closed) c.round().unsure = is_unsure(c);
  const bool other_phase = c.round().phase != state.round.phase ||
                           c.round().number != state.round.number || !state.round_written;
  if (other_phase) c.round().since_ms = phase_since_ms(c);
  const bool written =
      state.round_written && state.latest_written && state.job_written && state.history_written;
  if (c.round() != state.round || !written || c.decision.tries) {
    c.round().epoch = state.epoch;
    if (!state.job_written && c.round().phase != Phase::Closed)
      c.write(state.keys.job, encode(JobDocument{state.agreement}));
    if (!state.history_written) c.history();
    if (c.decision.history) c.write(state.keys.history, encode(*c.decision.history));
    c.write(state.keys.round, encode(c.round()));  // last: it is what starts and stops
  }
  return std::move(c.decision);
}

std::optional<Time> next_deadline(const State& state, const Config& config) {
  if (state.round.phase == Phase::Closed) return std::nullopt;
  EarliestDeadline next;
  for (const auto& ticket : state.held) {
    const Member& member = state.members.find(ticket)->second;
    if (!holds_workers(member.document)) next.include(member.since, duplicate_grace(config));
  }
  if (state.leaving > 0 && state.staying == 0 && state.members.contains(config.ticket))
    next.include(state.grace_until);
  switch (state.round.phase) {
    case Phase::Running:
      if (state.missing > 0) next.include(state.grace_until);
      next.include(awaits_failures(state));
      if (is_still(state) && !state.round.hung && state.failures.empty())
        next.include(state.last_success, config.hang_timeout);
      if (state.round.unsure) next.include(state.unsure_until);
      // A round that is to be stopped for a failure makes room for nobody.
      if (config.resize == Resize::Now && state.succeeded == 0 && state.missing == 0 &&
          state.failures.empty() && makes_larger(config, state.round.nodes, state.joiners)) {
        next.include(state.last_join, config.quiet_period);
        next.include(state.joiners_since, config.last_call_timeout);
      }
      break;
    case Phase::Stopping:
      if (state.unleft > 0) {
        if (state.stopping_since) next.include(stop_due(state, config, *state.stopping_since));
      } else if (state.missing > 0) {
        next.include(state.grace_until);
      }
      break;
    case Phase::Gathering:
      if (state.holding > 0) {
        if (state.holding_since) next.include(stop_due(state, config, *state.holding_since));
      } else if (state.unsure_until) {
        next.include(state.unsure_until);
      } else if (state.ready >= config.min_nodes) {
        EarliestDeadline quiet;
        quiet.include(state.last_join, config.quiet_period);
        quiet.include(state.enough_since, config.last_call_timeout);
        const bool enough = state.ready >= config.max_nodes || !state.last_join;
        next.include(enough ? state.leave_until : std::max(quiet.time(), state.leave_until));
      }
      if (state.progress_due) next.include(state.next_progress);
      next.include(state.waiting_since, config.join_timeout);
      break;
    case Phase::Preparing:
      next.include(state.preparing_since, kPrepareTimeout);
      break;
    case Phase::Closed:
      break;
  }
  return next.time();
}

}  // namespace drun::rendezvous
