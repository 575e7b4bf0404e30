// adopt(): what a decision changes once it is in the store.
#include <algorithm>
#include <utility>

#include "rendezvous/admission.hpp"
#include "rendezvous/member_counts.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/root_cause.hpp"

namespace drun::rendezvous {
namespace {

constexpr std::int64_t kCrashUptimeMs = 10'000;
constexpr Milliseconds kFirstProgress{2'000};
constexpr Milliseconds kSlowestProgress{30'000};

// Its refusal is in the store now.
void note_refused(State& state, const std::string& ticket, const std::string& reason, Time now) {
  state.assignment_keys.insert(ticket);
  const auto member = state.members.find(ticket);
  if (member == state.members.end()) return;
  count(state, ticket, member->second, -1);
  refuse(state, ticket, member->second, reason);
  state.to_refuse.erase(ticket);
  state.held.erase(ticket);
  release_rank(state, ticket, member->second.document, now);
  state.plan_broken |= state.planned.contains(ticket);
  // While the round is being stopped this must not count as a lost node: a lost node would excuse
  // the workers' failure, and the job would be restarted for free.
  RankSlot* slot = find_slot(state, ticket);
  if (slot != nullptr && state.round.phase == Phase::Running) lose(state, *slot);
}

// It is there, and counts for nothing.
void note_unfit(State& state, const std::string& ticket, Time now) {
  const auto member = state.members.find(ticket);
  if (member == state.members.end() || member->second.standing != Standing::Eligible) return;
  count(state, ticket, member->second, -1);
  member->second.standing = Standing::Unfit;
  release_rank(state, ticket, member->second.document, now);
  count(state, ticket, member->second, 1);
}

void take_places(State& state) {
  state.slots.clear();
  state.occupied.clear();
  state.recalled.clear();
  state.vacant = 0;
  for (const auto& planned : state.plan) {
    RankSlot& slot = state.slots[planned.ticket];
    slot.group_rank = planned.assignment.group_rank;
    const auto member = state.members.find(planned.ticket);
    // It may have gone, or been told to, while the round was being published.
    const bool there = member != state.members.end();
    if (there) slot.host = member->second.document.host;
    slot.told = there && was_told(member->second);
    slot.lost = !there || member->second.standing == Standing::Leaving;
    state.assignment_keys.insert(planned.ticket);
  }
  state.plan.clear();
}

// Counts how often the same rank failed in the same way soon after its start. Call before the
// failures of the round are forgotten.
void note_crash(State& state) {
  if (state.failures.empty()) return;
  const auto& root = state.failures.front().summary;
  const bool same = root.rank == state.crash_rank && root.cause == state.crash_cause;
  state.crashes = root.uptime_ms >= kCrashUptimeMs ? 0 : same ? state.crashes + 1 : 1;
  state.crash_rank = root.rank;
  state.crash_cause = root.cause;
}

}  // namespace

void put_first(std::vector<Failure>& failures, const std::string& ticket) {
  const auto root = std::find_if(failures.begin(), failures.end(),
                                 [&](const Failure& each) { return each.ticket == ticket; });
  if (root == failures.end()) return;
  std::rotate(failures.begin(), root, root + 1);
  std::vector<const FailureSummary*> all;
  for (const Failure& each : failures)
    all.push_back(&each.summary);
  name_rarest(failures.front().summary, all);
}

void adopt(State& state, const Config& config, const Decision& decision, Time now) {
  for (const auto& [ticket, reason] : decision.refused)
    note_refused(state, ticket, reason, now);
  for (const auto& ticket : decision.unfit)
    note_unfit(state, ticket, now);
  if (!decision.unfit.empty()) note_times(state, config, now);
  for (const auto& ticket : decision.dropped)
    state.assignment_keys.erase(ticket);
  if (state.round.phase == Phase::Gathering && decision.round.phase == Phase::Gathering &&
      state.next_progress && now >= *state.next_progress) {
    state.progress_interval =
        std::clamp(state.progress_interval * 2, kFirstProgress, kSlowestProgress);
    state.next_progress = now + state.progress_interval;
    state.progress_due = false;
  }
  if (state.unsure_until && now >= *state.unsure_until) state.unsure_until.reset();
  if (decision.writes.empty()) return;
  if (decision.tries) state.tried_at = now;
  if (decision.history) state.history = *decision.history;
  state.history_written = true;
  if (!decision.root.empty()) put_first(state.failures, decision.root);

  // Others may have come back while this was written.
  for (const auto& ticket : decision.reclaimed)
    state.reclaimed.erase(ticket);
  if (!is_alive(decision.round.phase)) state.reclaimed.clear();
  const bool first = !state.round_written;
  const RoundDocument before = std::exchange(state.round, decision.round);
  state.round_written = true;
  state.latest_written = true;
  state.job_written = true;
  const bool same = state.round.phase == before.phase && state.round.number == before.number;
  if (same && !(first && state.round.phase == Phase::Gathering)) return;

  if (state.round.restart_count > before.restart_count) note_crash(state);
  if (state.round.number != before.number) {
    state.failures.clear();
    state.failing = 0;
    state.awaited.clear();
    state.failed.clear();
    state.failed_ranks = 0;
  }
  state.plan = decision.plan;
  state.planned.clear();
  state.plan_broken = false;
  switch (state.round.phase) {
    case Phase::Gathering:
      if (!state.waiting_since) state.waiting_since = now;
      state.progress_interval = kFirstProgress;
      state.next_progress = now + kFirstProgress;
      break;
    case Phase::Preparing:
      if (!state.waiting_since) state.waiting_since = now;
      state.preparing_since = now;
      state.assignment_keys.insert(state.plan.front().ticket);
      for (const auto& planned : state.plan) {
        state.planned.insert(planned.ticket);
        // It may have gone, or lost its rank to another, since the plan was made.
        const auto member = state.members.find(planned.ticket);
        state.plan_broken |=
            member == state.members.end() || member->second.standing != Standing::Eligible;
      }
      break;
    case Phase::Running:
      take_places(state);
      state.unheard.clear();  // what they may have had is over
      std::erase_if(state.others,
                    [&](const Place& other) { return other.before(state.round.latest); });
      state.waiting_since.reset();
      if (state.leaving == 0) state.leave.reset();
      break;
    case Phase::Stopping:
      state.stopping_since = now;
      break;
    case Phase::Closed:
      break;
  }
  recount(state, config, now);
  // Whoever was waited for is in: when the round ends, the next has nobody to wait for but those
  // who come from now on.
  if (state.round.phase == Phase::Running && state.joiners == 0) state.last_join.reset();
}

}  // namespace drun::rendezvous
