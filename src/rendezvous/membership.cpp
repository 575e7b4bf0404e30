#include "rendezvous/membership.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/admission.hpp"
#include "rendezvous/member_counts.hpp"

namespace drun::rendezvous {
namespace {

constexpr int kMaxRoundsAhead = 1'000'000;
// All nodes notice within a heartbeat that a store is gone, and at once if its process has died.
constexpr Milliseconds kComeOver{200};

// It holds workers of a round of which nobody here knew that it is in it.
bool holds_forgotten(const State& state, const std::string& ticket, const Member& member) {
  const auto& claim = member.document.claim;
  if (member.standing == Standing::Refused || !claim || claim->round <= member.document.left)
    return false;
  return !(claim->round == state.round.ran && state.slots.contains(ticket)) &&
         !(claim->round == state.round.number && state.planned.contains(ticket));
}

// The agent is there: its session was alive all along, or it came back within the grace or before
// anything was decided. Either it has left the round or it still holds its workers, so nothing is
// lost.
void find_again(State& state, RankSlot& slot) {
  if (slot.missing) {
    slot.missing = false;
    --state.missing;
  }
  if (slot.lost && state.round.phase == Phase::Running) {
    slot.lost = false;
    --state.lost;
  }
}

// Its workers of the present round are being stopped. If they had not succeeded before, the round
// is over for all, and what fails in it is a result of that.
void let_go(State& state, const std::string& ticket, Member& member, RankSlot* slot, Time now) {
  if (member.standing == Standing::Refused || member.standing == Standing::Leaving) return;
  member.standing = Standing::Leaving;
  state.held.erase(ticket);
  release_rank(state, ticket, member.document, now);
  state.plan_broken |= state.planned.contains(ticket);
  if (slot != nullptr) slot->told = was_told(member);
  if (slot != nullptr && !slot->succeeded) lose(state, *slot);
  if (!state.leave) state.leave = member.document.leave;
  state.leave_until = now + kLeaveWindow;
}

// Two rounds may have one number, if each began without knowing of the other.
bool same_round(const Assignment& a, const Assignment& b) {
  return a.master_address == b.master_address && a.master_port == b.master_port &&
         a.world_size == b.world_size && a.group_world_size == b.group_world_size;
}

// The store forgot who has which place, but this member has one.
void reclaim(State& state, const std::string& ticket, const MemberDocument& d) {
  if (!is_alive(state.round.phase) || !d.claim || d.claim->round != state.round.number) return;
  if (state.slots.contains(ticket)) return;
  if (state.known_place && !same_round(*state.known_place, *d.claim)) return;
  if (!state.round.master.empty() && state.round.master != master(*d.claim)) return;
  if (!state.occupied.insert(d.claim->group_rank).second) return;
  state.known_place = d.claim;
  --state.vacant;
  if (int& counted = state.grace_until ? state.missing : state.lost; counted > 0) --counted;
  state.slots[ticket] = {d.host, d.claim->group_rank};
  state.reclaimed.emplace(ticket, *d.claim);
}

// What becomes of the workers of this place is known. If it was the last one: of all.
void hear(State& state, const Place& place, Time now) {
  if (state.unheard.erase({place.era, place.round, place.rank}) == 0) return;
  if (!state.unheard.empty()) return;
  if (state.grace_until) state.grace_until = std::min(*state.grace_until, now);
  if (state.unsure_until) state.unsure_until = std::min(*state.unsure_until, now);
}

// Others of a round of which nobody knew may be out of touch, and have workers until then.
Time others_end(const State& state, const Config& config, Time now) {
  if (!state.succession.is_later()) return now + config.keep_alive;
  return state.unheard.empty() ? now : std::max(now, state.succession.sure_from);
}

}  // namespace

void note_gone(State& state, const Place& place, Time now) {
  hear(state, place, now);
  state.dead_places.emplace(place.round, place.rank);
}

void note_death(State& state, const std::string& ticket) {
  state.deaths.insert(ticket);
}

bool has_died(const State& state, std::string_view ticket) {
  if (state.deaths.contains(ticket)) return true;
  const auto slot = state.slots.find(ticket);
  return slot != state.slots.end() &&
         state.dead_places.contains({state.round.ran, slot->second.group_rank});
}

Milliseconds duplicate_grace(const Config& config) {
  return config.keep_alive + Milliseconds(3'000);
}

std::string impossible(const RoundDocument& known, const MemberDocument& d) {
  const int highest = std::max({d.left, d.seen, d.claim ? d.claim->round : 0});
  if (highest <= std::int64_t{known.number} + kMaxRoundsAhead) return {};
  return d.host + " speaks of round " + std::to_string(highest) + ", the job is in round " +
         std::to_string(known.number);
}

bool was_told(const Member& member) {
  const auto& leave = member.document.leave;
  return member.standing == Standing::Leaving && leave && leave->exit_code != kDrunFailed;
}

std::string master(const Assignment& place) {
  return place.master_address + ":" + std::to_string(place.master_port);
}

bool is_another(const RoundDocument& a, const RoundDocument& b) {
  return a.number == b.number && !a.master.empty() && !b.master.empty() && a.master != b.master;
}

bool holds_workers(const MemberDocument& document) {
  return document.claim && document.claim->round > document.left;
}

bool claims_unknown_round(const RoundDocument& known, const MemberDocument& document) {
  if (!holds_workers(document)) return false;
  const int claimed = document.claim->round;
  // Or it ran under a number that is said not to have run.
  return claimed > known.number || (!is_alive(known.phase) && claimed > known.ran);
}

bool is_unknown(const State& state, const Place& latest, const Place& said) {
  if (!latest.exists() || latest.same_origin(said)) return latest.before(said);
  if (said.generation() < latest.generation()) return false;
  return std::none_of(state.others.begin(), state.others.end(), [&](const Place& other) {
    return other.same_origin(said) && !other.before(said);
  });
}

Time join_counts_from(const State& state, const Config& config, const MemberDocument& document,
                      Time now) {
  const bool comes_over = state.succession.is_later() && document.latest.exists();
  return comes_over ? now - config.quiet_period + std::min(kComeOver, config.quiet_period) : now;
}

void observe(State& state, const Config& config, const std::string& ticket, MemberDocument document,
             Time now, const std::string& problem) {
  auto [at, is_new] = state.members.try_emplace(ticket);
  Member& member = at->second;
  if (!is_new && !problem.empty()) return;
  const bool known = !is_new && holds_forgotten(state, ticket, member);
  if (!is_new) count(state, ticket, member, -1);
  if (state.vacant > 0) reclaim(state, ticket, document);
  RankSlot* slot = find_slot(state, ticket);
  if (is_new) {
    member.document = std::move(document);
    if (slot != nullptr) find_again(state, *slot);
    admit(state, config, ticket, member, now, problem);
  } else {
    document.node_rank = member.document.node_rank;  // what it asked for at first counts
    member.document = std::move(document);
  }
  const auto& d = member.document;
  if (impossible(state.round, d).empty()) {
    state.floor = std::max({state.floor, d.left, d.seen, d.claim ? d.claim->round : 0});
    state.restarts_floor = std::max(state.restarts_floor, d.restarts);
    state.losses_floor = std::max(state.losses_floor, d.losses);
  }
  if (slot != nullptr) note_slot(state, ticket, *slot, d, now);
  if (d.leave) let_go(state, ticket, member, slot, now);
  count(state, ticket, member, 1);
  // Others of its round may be out of touch, and have workers.
  if (!known && holds_forgotten(state, ticket, member))
    state.unsure_until = std::max(state.unsure_until.value_or(now), others_end(state, config, now));
  hear(state, d.latest, now);
  note_stop(state, ticket, member);
  note_times(state, config, now);
}

void give_time_to_stop(State& state, Time now) {
  if (state.stopping_since) state.stopping_since = now;
  if (state.holding_since) state.holding_since = now;
}

void forget(State& state, const Config& config, const std::string& ticket, Time now) {
  const auto at = state.members.find(ticket);
  if (at == state.members.end()) return;
  Member& member = at->second;
  count(state, ticket, member, -1);
  if (RankSlot* slot = find_slot(state, ticket); slot != nullptr && is_alive(state.round.phase)) {
    const bool left = member.document.left >= state.round.number;
    const bool in_order = slot->succeeded || (left && state.round.phase != Phase::Running);
    if (!in_order) lose(state, *slot);
  }
  state.held.erase(ticket);
  state.to_refuse.erase(ticket);
  state.plan_broken |= state.planned.contains(ticket);

  const MemberDocument document = std::move(member.document);
  state.members.erase(at);
  release_rank(state, ticket, document, now);
  note_times(state, config, now);
}

}  // namespace drun::rendezvous
