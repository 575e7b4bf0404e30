#include "rendezvous/member_counts.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/admission.hpp"
#include "rendezvous/failure_merge.hpp"
#include "rendezvous/node_count.hpp"

namespace drun::rendezvous {

RankSlot* find_slot(State& state, const std::string& ticket) {
  const auto slot = state.slots.find(ticket);
  return slot == state.slots.end() ? nullptr : &slot->second;
}

// It holds workers of the present round.
bool claims_place(const State& state, const MemberDocument& d) {
  return is_alive(state.round.phase) && d.claim && d.claim->round == state.round.number &&
         d.claim->round > d.left;
}

// Adds (sign 1) or takes away (-1) what one member counts for.
void count(State& state, const std::string& ticket, const Member& member, int sign) {
  const auto& d = member.document;
  const bool has_place = is_alive(state.round.phase) && state.slots.contains(ticket);
  const bool holds =
      (d.claim && d.claim->round > d.left) || (has_place && d.left < state.round.number);
  if (has_place && holds && member.standing != Standing::Refused) state.unleft += sign;
  if (has_place && !holds && d.succeeded != state.round.number && d.failed != state.round.number)
    state.early += sign;
  if (holds && member.standing != Standing::Refused) state.holding += sign;
  if (!has_place && claims_place(state, d) && member.standing != Standing::Refused)
    state.strangers += sign;
  if (member.standing == Standing::Leaving) state.leaving += sign;
  if (member.standing == Standing::Eligible || member.standing == Standing::Held)
    state.staying += sign;
  if (member.standing != Standing::Eligible || holds || d.stop) return;
  state.ready += sign;
  if (!has_place) state.joiners += sign;
}

// Keeps the moments from which decisions count their time.
void note_times(State& state, const Config& config, Time now) {
  if (state.ready < config.min_nodes) {
    state.enough_since.reset();
  } else if (!state.enough_since) {
    state.enough_since = now;
  }
  if (!makes_larger(config, state.round.nodes, state.joiners)) {
    state.joiners_since.reset();
  } else if (!state.joiners_since) {
    state.joiners_since = now;
  }
  if (state.holding == 0 || state.round.phase != Phase::Gathering) {
    state.holding_since.reset();
  } else if (!state.holding_since) {
    state.holding_since = now;
  }
  state.progress_due = true;
}

namespace {

// The first one is of the node that said first that it fails; but what the round is stopped for
// stays it. The others come as they come: of thousands no place among them is looked for.
void add_failure(State& state, Failure failure) {
  auto& failures = state.failures;
  failures.push_back(std::move(failure));
  const bool chosen = state.round.phase == Phase::Stopping && state.round.cause == Cause::Failure;
  if (!chosen && failures.back().as < failures.front().as)
    std::swap(failures.front(), failures.back());
}

}  // namespace

void note_slot(State& state, const std::string& ticket, RankSlot& slot, const MemberDocument& d,
               Time now) {
  if (!is_alive(state.round.phase)) return;
  if (d.succeeded == state.round.number && !slot.succeeded) {
    slot.succeeded = true;
    ++state.succeeded;
    state.last_success = now;
  }
  const bool stalled = !slot.succeeded && d.stalled == state.round.number;
  state.stalled += (stalled ? 1 : 0) - (slot.stalled ? 1 : 0);
  slot.stalled = stalled;
  const bool failed = d.failed == state.round.number && d.failure;
  if (slot.failed_as == 0 && (failed || d.failing == state.round.number)) {
    slot.failed_as = ++state.failing;
    state.awaited.insert(slot.failed_as);
  }
  if (failed && state.failed.insert(ticket).second) {
    if (state.failures.empty()) state.failed_since = now;
    state.awaited.erase(slot.failed_as);
    add_failure(state, {ticket, *d.failure, slot.failed_as});
    state.failed_ranks = std::min(kMaxRanks, state.failed_ranks + count_ranks(*d.failure));
  }
}

void lose(State& state, RankSlot& slot) {
  if (!is_alive(state.round.phase) || slot.lost || slot.missing) return;
  slot.lost = true;
  ++state.lost;
}

void recount(State& state, const Config& config, Time now) {
  state.ready = state.joiners = state.unleft = state.early = state.holding = state.strangers = 0;
  state.staying = state.leaving = 0;
  for (const auto& [ticket, member] : state.members) {
    count(state, ticket, member, 1);
    note_stop(state, ticket, member);
  }
  state.succeeded = state.stalled = state.missing = state.lost = 0;
  if (is_alive(state.round.phase)) {
    (state.grace_until ? state.missing : state.lost) = state.vacant;
    for (auto& [ticket, slot] : state.slots) {
      state.succeeded += slot.succeeded ? 1 : 0;
      state.stalled += slot.stalled ? 1 : 0;
      state.lost += slot.lost ? 1 : 0;
      state.missing += slot.missing ? 1 : 0;
      const auto member = state.members.find(ticket);
      if (member != state.members.end())
        note_slot(state, ticket, slot, member->second.document, now);
    }
  }
  note_times(state, config, now);
}

}  // namespace drun::rendezvous
