// restore(): what a new leader makes of the keys that it finds.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

#include "rendezvous/found_keys.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/messages.hpp"
#include "rendezvous/restored_electorate.hpp"

namespace drun::rendezvous {
namespace {

// Of a member that is known, a document that makes no sense changes nothing: the last one that did
// counts.
void overlook_nonsense(FoundKeys& found, const State& previous,
                       std::vector<std::string>& problems) {
  for (auto& member : found.members) {
    if (member.problem.empty()) member.problem = impossible(previous.round, member.document);
    const auto known = previous.members.find(member.ticket);
    if (member.problem.empty() || known == previous.members.end()) continue;
    if (known->second.standing == Standing::Refused) continue;
    problems.push_back(std::exchange(member.problem, ""));
    member.document = known->second.document;
  }
}

// The round that the members themselves know of: the highest that one holds, has left or has seen.
RoundDocument round_of_members(FoundKeys& found, const RoundDocument& seen) {
  RoundDocument round = seen;
  round.phase = is_alive(seen.phase) ? seen.phase : Phase::Gathering;
  if (found.round) {
    round.restart_count = std::max(round.restart_count, found.round->restart_count);
    round.losses = std::max(round.losses, found.round->losses);
  }
  const RoundDocument known =
      found.round && found.round->number > seen.number ? *found.round : seen;
  for (auto& member : found.members) {
    const auto& d = member.document;
    if (member.problem.empty()) member.problem = impossible(known, d);
    if (!member.problem.empty()) continue;
    if (claims_unknown_round(round, d)) {
      round.number = round.ran = d.claim->round;
      round.phase = Phase::Running;
      round.nodes = d.claim->group_world_size;
      round.world_size = d.claim->world_size;
      round.master = master(*d.claim);
      round.since_ms = 0;  // nobody says when it began
      round.restart_count = std::max(round.restart_count, d.claim->restart_count);
      round.losses = std::max(round.losses, d.losses);
    } else if (std::max(d.left, d.seen) > round.number) {
      round.losses = std::max(round.losses, d.losses);
      round.number = std::max(d.left, d.seen);
      round.phase = Phase::Gathering;
    }
    // A node may have left a round that never ran: to leave it, a part of the decision to start it
    // is enough. So `left` does not count here.
    round.ran = std::max({round.ran, d.seen, d.claim ? d.claim->round : 0});
  }
  round.brief = round.brief && round.phase == Phase::Stopping;
  return round;
}

// How far a round has come, in the order of its life: it never goes back. A number that was tried
// in vain may yet run, in a store that has forgotten the try.
std::tuple<int, int> progress(const RoundDocument& round) {
  const bool over = round.ran >= round.number;
  const int step = round.phase == Phase::Closed              ? 4
                   : round.phase == Phase::Stopping          ? 2
                   : round.phase == Phase::Running           ? 1
                   : round.phase == Phase::Gathering && over ? 3
                                                             : 0;
  return {round.number, step};
}

// The store was emptied since this agent led, and has a round that others began with the same
// number.
bool is_of_others(const FoundKeys& found, const State& previous) {
  if (!found.round || found.round->number != previous.round.number) return false;
  const auto runs = [&](const auto& place) {
    return place.second.go && place.second.assignment.round == found.round->number;
  };
  const auto& places = found.assignments;
  return std::any_of(places.begin(), places.end(), runs) &&
         std::none_of(places.begin(), places.end(), [&](const auto& place) {
           return runs(place) && previous.slots.contains(place.first);
         });
}

void find_round(State& state, FoundKeys& found, const RoundDocument& seen) {
  const RoundDocument known = round_of_members(found, seen);
  const bool in_time = found.round && found.round->version == kProtocolVersion &&
                       found.round->number >= known.number;
  // What the store says of this very round may be older than what is known.
  const bool behind = in_time && found.round->number == known.number &&
                      ((is_alive(known.phase) && found.round->ran < known.ran) ||
                       (seen.phase != Phase::Closed && progress(seen) > progress(*found.round)));
  if (in_time && !behind) {
    state.round = *found.round;
    state.round_written = true;
    // What was being prepared never ran: it is decided again, under a new number.
    if (state.round.phase == Phase::Preparing) state.round.phase = Phase::Gathering;
  } else {
    state.round = known;
  }
  // A number that was tried in vain may be that of a round that the store has forgotten.
  if (!is_alive(state.round.phase)) state.round.ran = std::max(state.round.ran, known.ran);
  if (found.outcome) state.round.phase = Phase::Closed;
}

// A node that was given a place in an earlier round counts as having workers until it says that it
// has left that round, even if it has not said yet that it began.
void find_claims(FoundKeys& found, const State& state) {
  for (auto& [ticket, d, problem] : found.members) {
    const auto place = found.assignments.find(ticket);
    if (place == found.assignments.end() || !place->second.go) continue;
    const int number = place->second.assignment.round;
    if (is_alive(state.round.phase) && number == state.round.number) continue;
    if (d.left < number && (!d.claim || d.claim->round < number))
      d.claim = place->second.assignment;
  }
}

void find_places(State& state, const FoundKeys& found) {
  for (const auto& [ticket, document] : found.assignments)
    state.assignment_keys.insert(ticket);
  for (const auto& ticket : found.unreadable_assignments)
    state.assignment_keys.insert(ticket);
  for (const auto& [ticket, document] : found.assignments) {
    if (!document.refused.empty()) continue;
    if (document.go && document.assignment.round == state.round.ran) {
      state.slots[ticket] = {document.host, document.assignment.group_rank};
      state.known_place = document.assignment;
    }
    if (!document.go && document.assignment.round > state.round.ran && document.last_rank >= 0)
      state.slots[ticket].group_rank = document.last_rank;
  }
  if (is_alive(state.round.phase))
    state.vacant = std::max(0, state.round.nodes - static_cast<int>(state.slots.size()));
  for (const auto& [ticket, slot] : state.slots)
    state.occupied.insert(slot.group_rank);
}

// The store has lost who had which place in the last round, and not all have said it again yet.
// This agent knows it, from when it led. While the round runs, its nodes take their places again by
// themselves, or are lost; their ranks are for those that are there for the next one.
void recall_places(State& state, const State& previous) {
  if (state.round.ran != previous.round.ran || is_another(state.round, previous.round)) return;
  const bool alive = is_alive(state.round.phase);
  const auto recall = [&](const std::string& ticket, int group_rank) {
    if (state.slots.contains(ticket)) return;
    if (alive) {
      state.recalled.emplace(ticket, group_rank);
    } else if (state.occupied.insert(group_rank).second) {
      state.slots[ticket].group_rank = group_rank;
    }
  };
  for (const auto& [ticket, slot] : previous.slots)
    recall(ticket, slot.group_rank);
  for (const auto& [ticket, group_rank] : previous.recalled)
    recall(ticket, group_rank);
}

// In the order in which they came, as far as known; those of the round keep their asked-for ranks.
void find_members(State& state, const Config& config, FoundKeys& found, const State* previous,
                  Time now) {
  const auto order = [&](const FoundKeys::FoundMember& member) {
    const auto slot = state.slots.find(member.ticket);
    const bool has_place = slot != state.slots.end();
    std::uint64_t arrival = 0;
    if (previous != nullptr) {
      const auto known = previous->members.find(member.ticket);
      if (known != previous->members.end()) arrival = known->second.arrival;
    }
    return std::tuple(!has_place, arrival == 0, arrival, has_place ? slot->second.group_rank : 0);
  };
  std::stable_sort(found.members.begin(), found.members.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  auto last_join = previous != nullptr ? previous->last_join : std::nullopt;
  for (auto& member : found.members) {
    if (!state.slots.contains(member.ticket) &&
        (previous == nullptr || !previous->members.contains(member.ticket)))
      last_join =
          std::max(last_join, std::optional(join_counts_from(state, config, member.document, now)));
    const auto told = found.assignments.find(member.ticket);
    const bool refused = told != found.assignments.end() && !told->second.refused.empty();
    observe(state, config, member.ticket, std::move(member.document), now,
            refused ? told->second.refused : member.problem);
    if (refused) state.to_refuse.erase(member.ticket);
  }
  state.last_join = last_join;  // observe() has counted them all as newcomers
}

// Its place in the round is lost.
bool goes(const State& state, const Member& member) {
  const bool succeeded = member.document.succeeded == state.round.number;
  return member.standing == Standing::Refused ||
         (member.standing == Standing::Leaving && !succeeded);
}

// A round ran of which only its members tell; or the one that runs gives way to what this agent
// knows, and may be another than the one that had its number here.
bool has_forgotten_round(const State& state, const FoundKeys& found, const State* previous,
                         const RoundDocument& seen) {
  if (state.round.phase != Phase::Gathering) return false;
  if (found.round && is_alive(found.round->phase) && !state.round_written) return true;
  return state.round.ran > std::max({seen.ran, previous != nullptr ? previous->round.ran : 0,
                                     state.round_written ? found.round->ran : 0});
}

// Nodes that are out of touch may have workers: of a forgotten round, or because the last leader
// was not sure. That one cannot have begun to wait later than now. `others_until`: or of a round
// that only this agent has seen.
void wait_until_sure(State& state, const Config& config, const State* previous, bool forgotten,
                     std::optional<Time> others_until, Time now) {
  if (others_until && now < *others_until) state.unsure_until = others_until;
  // A store that was set back may name it the leader that it once was: others have led since.
  const bool led_until_now = previous != nullptr && previous->epoch == state.epoch &&
                             progress(previous->round) >= progress(state.round);
  Time until = now;
  if (led_until_now) {
    until = std::max(previous->unsure_until.value_or(now), previous->grace_until.value_or(now));
  } else if (state.round.unsure) {
    until = now + config.keep_alive;
  }
  // Or it led before, and has written nothing of what it waits for.
  if (previous != nullptr && previous->unsure_until && previous->round.ran == state.round.ran)
    until = std::max(until, *previous->unsure_until);
  const bool unsure = until > now && (state.round.unsure || previous->unsure_until);
  if (forgotten) until = now + config.keep_alive;
  if (until <= now) return;
  state.grace_until = std::max(state.grace_until.value_or(now), until);
  if (forgotten || unsure)
    state.unsure_until = std::max(state.unsure_until.value_or(now), *state.grace_until);
}

}  // namespace

State restore(const Config& config, std::int64_t epoch, const std::vector<Change>& entries,
              const State* previous, const RoundDocument& seen, std::optional<Time> grace_until,
              std::optional<Time> others_until, Time now, std::vector<std::string>& problems,
              const Succession& succession) {
  State state{Keys(config.run_id)};
  FoundKeys found = find_keys(state.keys, entries, problems);
  if (previous != nullptr) overlook_nonsense(found, *previous, problems);
  state.epoch = epoch;
  state.succession = succession;
  if (found.silence) state.succession.sure_from -= *found.silence;
  state.history = found.history;
  state.agreement = found.job ? std::move(found.job->agreement) : full_agreement(config);
  state.job_written = found.job.has_value();
  const bool of_others =
      previous != nullptr && (is_of_others(found, *previous) || is_another(previous->round, seen));
  const bool led_longer =
      previous != nullptr && progress(previous->round) > progress(seen) && !of_others;
  find_round(state, found, led_longer ? previous->round : seen);
  find_latest(state, found, previous, seen);
  if (succession.is_later()) {
    wait_for_unheard(state, now);
  } else {
    const bool set_back = !state.round_written && state.round.number > 0;
    if (set_back) grace_until = std::max(grace_until.value_or(now), now + config.keep_alive);
    state.grace_until = grace_until;
    wait_until_sure(state, config, previous, has_forgotten_round(state, found, previous, seen),
                    others_until, now);
  }
  grace_until = state.grace_until;
  find_claims(found, state);
  find_places(state, found);
  if (previous != nullptr && !of_others) recall_places(state, *previous);
  find_members(state, config, found, previous, now);

  for (auto& [ticket, slot] : state.slots) {
    const auto member = state.members.find(ticket);
    const bool there = member != state.members.end();
    if (there) slot.host = member->second.document.host;
    slot.missing = !there && grace_until.has_value();
    slot.lost = there ? goes(state, member->second) : !grace_until.has_value();
    slot.told = there ? was_told(member->second) : !said_of_leaving(state, slot).empty();
  }
  if (previous != nullptr) {
    // A round that ran meanwhile ended that wait.
    if (previous->round.ran == state.round.ran) state.waiting_since = previous->waiting_since;
    state.crashes = previous->crashes;
    state.crash_rank = previous->crash_rank;
    state.crash_cause = previous->crash_cause;
    state.refusals = previous->refusals;
    state.other_jobs = previous->other_jobs;
    if (found.history.rounds.empty() && !of_others) state.history = previous->history;
  }
  if (state.history.rounds.empty() && succession.is_later()) state.history = succession.history;
  state.history_written = state.history == found.history;
  if (is_alive(state.round.phase)) state.waiting_since.reset();
  if (state.round.phase == Phase::Gathering && !state.waiting_since) state.waiting_since = now;
  if (state.round.phase == Phase::Stopping) state.stopping_since = now;
  state.next_progress = now;
  recount(state, config, now);
  put_first(state.failures, state.round.root);
  return state;
}

}  // namespace drun::rendezvous
