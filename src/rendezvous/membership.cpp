#include "rendezvous/membership.hpp"

#include <algorithm>
#include <utility>

#include "rendezvous/failure_merge.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/node_count.hpp"
#include "rendezvous/root_cause.hpp"

namespace drun::rendezvous {
namespace {

constexpr int kMaxRoundsAhead = 1'000'000;
constexpr std::size_t kMaxRefusals = 3;  // remembered for the time-out's text
constexpr std::int64_t kCrashUptimeMs = 10'000;
// All nodes notice within a heartbeat that a store is gone, and at once if its process has died.
constexpr Milliseconds kComeOver{200};
constexpr Milliseconds kFirstProgress{2'000};
constexpr Milliseconds kSlowestProgress{30'000};

RankSlot* find_slot(State& state, const std::string& ticket) {
  const auto slot = state.slots.find(ticket);
  return slot == state.slots.end() ? nullptr : &slot->second;
}

// It holds workers of the present round.
bool claims_place(const State& state, const MemberDocument& d) {
  return is_alive(state.round.phase) && d.claim && d.claim->round == state.round.number &&
         d.claim->round > d.left;
}

// It holds workers of a round of which nobody here knew that it is in it.
bool holds_forgotten(const State& state, const std::string& ticket, const Member& member) {
  const auto& claim = member.document.claim;
  if (member.standing == Standing::Refused || !claim || claim->round <= member.document.left)
    return false;
  return !(claim->round == state.round.ran && state.slots.contains(ticket)) &&
         !(claim->round == state.round.number && state.planned.contains(ticket));
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

void refuse(State& state, const std::string& ticket, Member& member, std::string reason) {
  member.standing = Standing::Refused;
  member.refusal = std::move(reason);
  state.to_refuse.insert(ticket);
  auto& known = state.refusals;
  if (std::find(known.begin(), known.end(), member.refusal) == known.end()) {
    if (known.size() == kMaxRefusals) known.erase(known.begin());
    known.push_back(member.refusal);
  }
}

std::string why_refused(const State& state, const Config& config, const MemberDocument& d) {
  if (d.version != kProtocolVersion)
    return d.host + " speaks rendezvous protocol " + std::to_string(d.version) + ", the job " +
           std::to_string(kProtocolVersion);
  if (auto fields = disagreement(d.host, d.agreement, state.agreement); !fields.empty())
    return fields;
  if (d.node_rank && *d.node_rank >= config.max_nodes)
    return d.host + " asks for node rank " + std::to_string(*d.node_rank) + ", the job has " +
           nodes_text(config);
  return {};
}

void join(State& state, const std::string& ticket, Member& member) {
  member.standing = Standing::Eligible;
  if (member.document.node_rank) state.rank_holders.emplace(*member.document.node_rank, ticket);
}

// Only a node of the running or last job round ends the job for all; before the first round, any
// does. The host takes the store with it.
bool may_stop_job(const State& state, const std::string& ticket, const Member& member) {
  return member.standing == Standing::Eligible &&
         (state.slots.empty() || state.slots.contains(ticket) || member.document.is_host);
}

void note_stop(State& state, const std::string& ticket, const Member& member) {
  if (member.document.stop && !state.stop && may_stop_job(state, ticket, member))
    state.stop = member.document.stop;
}

// The member takes part no more: the rank that it asked for goes to the member that has waited for
// it longest.
void release_rank(State& state, const std::string& ticket, const MemberDocument& document,
                  Time now) {
  if (!document.node_rank) return;
  const auto holder = state.rank_holders.find(*document.node_rank);
  if (holder == state.rank_holders.end() || holder->second != ticket) return;
  state.rank_holders.erase(holder);
  auto heir = state.members.end();
  for (const auto& waiting : state.held) {
    const auto next = state.members.find(waiting);
    if (next->second.document.node_rank == document.node_rank &&
        (heir == state.members.end() || next->second.arrival < heir->second.arrival))
      heir = next;
  }
  if (heir == state.members.end()) return;
  state.held.erase(heir->first);
  count(state, heir->first, heir->second, -1);
  join(state, heir->first, heir->second);
  state.last_join = now;
  count(state, heir->first, heir->second, 1);
  note_stop(state, heir->first, heir->second);  // it may have been told while it waited
}

// Takes the rank from its holder. If that only wished for it, it goes on without; if it insists, it
// waits until the rank is free again.
void displace(State& state, std::map<int, std::string>::iterator at, Time now) {
  const std::string ticket = std::move(at->second);
  state.rank_holders.erase(at);
  Member& member = state.members.find(ticket)->second;
  count(state, ticket, member, -1);
  if (member.document.node_rank_is_wish) {
    member.document.node_rank.reset();
  } else {
    member.standing = Standing::Held;
    member.since = now;
    state.held.insert(ticket);
  }
  count(state, ticket, member, 1);
}

void admit(State& state, const Config& config, const std::string& ticket, Member& member, Time now,
           const std::string& problem) {
  member.arrival = ++state.arrivals;
  member.since = now;
  if (!problem.empty()) return refuse(state, ticket, member, problem);
  if (auto reason = why_refused(state, config, member.document); !reason.empty())
    return refuse(state, ticket, member, std::move(reason));
  auto& rank = member.document.node_rank;
  const bool wish = member.document.node_rank_is_wish;
  const auto& claim = member.document.claim;
  // It runs with another rank than it wished for, so the wish is over.
  if (wish && claim && claim->group_rank != rank) rank.reset();
  const auto at = rank ? state.rank_holders.find(*rank) : state.rank_holders.end();
  if (at != state.rank_holders.end()) {
    const std::string& holder = at->second;
    const bool settled = state.slots.contains(holder) || state.planned.contains(holder);
    const bool holder_wishes = state.members.find(holder)->second.document.node_rank_is_wish;
    // After the store has forgotten the round, members return in any order. The rank belongs to
    // the one whose workers run with it, not to the first that came back. Otherwise a member that
    // insists on the rank goes before one that only wishes for it.
    const bool runs = claims_place(state, member.document);
    if (!settled && (holder_wishes ? runs || !wish : runs && !wish)) {
      displace(state, at, now);
    } else if (wish) {
      rank.reset();
    } else {
      member.standing = Standing::Held;
      state.held.insert(ticket);
      return;
    }
  }
  join(state, ticket, member);
  state.last_join = std::max(state.last_join,
                             std::optional(join_counts_from(state, config, member.document, now)));
}

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
  if (d.failed == state.round.number && d.failure && state.failed.insert(ticket).second) {
    if (state.failures.empty()) state.failed_since = now;
    state.failures.push_back({ticket, *d.failure});
    state.failed_ranks = std::min(kMaxRanks, state.failed_ranks + count_ranks(*d.failure));
  }
}

void lose(State& state, RankSlot& slot) {
  if (!is_alive(state.round.phase) || slot.lost || slot.missing) return;
  slot.lost = true;
  ++state.lost;
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
