#include "rendezvous/set_aside.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/counted.hpp"
#include "base/exit_codes.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

bool is_set_aside(const RoundDocument& round, const std::string& ticket) {
  return std::any_of(round.set_aside.begin(), round.set_aside.end(),
                     [&](const SetAside& each) { return each.ticket == ticket; });
}

// Other nodes failed in the same way as the first, all in one round: that is the program. What
// fails in another way is what becomes of the peers of a node that failed. What a rank that hangs
// has printed says nothing of it.
bool failed_alike(const std::vector<Failure>& failures, const Failure& root) {
  return std::any_of(failures.begin(), failures.end(), [&](const Failure& each) {
    return &each != &root && each.summary.cause == root.summary.cause &&
           (root.summary.hung || each.summary.last_words == root.summary.last_words);
  });
}

// Of two ranks that wait for one another, the one that gave its heartbeat earlier is late earlier,
// maybe long before the other: nothing is known of nodes that have not told.
bool all_tell_of_hangs(const State& state) {
  const auto told = std::count_if(state.failures.begin(), state.failures.end(),
                                  [](const Failure& each) { return each.summary.hung; });
  return told + state.succeeded >= state.round.nodes;
}

// Nobody else that is there has cost a restart, but for those that are set aside: then it is the
// node. If it was the same with another node at its place, it is the program.
bool failed_by_itself(const State& state, const Config& config, const RoundDocument& round,
                      const std::string& ticket, const NodeCost& cost) {
  if (cost.restarts < config.exclude_after) return false;
  const bool others = std::any_of(round.costs.begin(), round.costs.end(), [&](const auto& each) {
    return each.first != ticket && !is_set_aside(round, each.first) &&
           state.members.contains(each.first);
  });
  const bool before = std::any_of(
      round.set_aside.begin(), round.set_aside.end(),
      [&](const SetAside& each) { return each.rank == cost.rank && each.cause == cost.cause; });
  return !others && !before;
}

// In the round, with those that are lost now. Whoever came meanwhile may take the place of one.
int agents_at(const State& state, std::string_view host) {
  return static_cast<int>(std::count_if(
      state.slots.begin(), state.slots.end(),
      [&](const auto& each) { return each.second.host == host && !each.second.told; }));
}

// A later store has never known the node that the one before was on: it is a place that nobody has
// claimed. Empty: it has come over, was told to go, or its name is not known.
std::string host_of_lost_store(const State& state) {
  RankSlot place;
  place.group_rank = state.round.latest.casting;
  place.host = state.round.store_host;
  if (state.vacant == 0 || place.group_rank < 0 || state.occupied.contains(place.group_rank))
    return {};
  return said_of_leaving(state, place).empty() ? place.host : "";
}

}  // namespace

void note_lost_hosts(const State& state, RoundDocument& round) {
  const std::string of_store = host_of_lost_store(state);
  std::set<std::string> hosts{of_store};
  for (const auto& [ticket, slot] : state.slots)
    if ((slot.lost || slot.missing) && !slot.told) hosts.insert(slot.host);
  hosts.erase("");  // not known
  auto& losses = round.lost_hosts;
  for (const std::string& host : hosts) {
    if (losses.size() >= kMaxCosts && !losses.contains(host)) continue;
    ++losses[host];
    if (const int agents = agents_at(state, host) + (host == of_store ? 1 : 0); agents > 1)
      round.agents_of_lost[host] = std::max(round.agents_of_lost[host], agents);
  }
}

// That workers only waited for somebody, or could not even be started, says nothing of the node;
// and what one node alone does says nothing of it either.
std::vector<SetAside> note_cost(const State& state, const Failure& root, const Config& config,
                                RoundDocument& round) {
  std::vector<SetAside> cleared;
  if (config.exclude_after <= 0 || state.round.nodes < 2) return cleared;
  const std::string& ticket = root.ticket;
  const FailureSummary& failure = root.summary;
  const int code = failure.signal != 0 ? 0 : failure.exit_code;
  if (failure.timed_out || is_of_drun(failure) || code == kCannotRun || code == kNotFound)
    return cleared;
  if (failed_alike(state.failures, root)) return cleared;
  if (failure.clue.step && !all_tell_of_hangs(state)) return cleared;
  for (SetAside& each : round.set_aside) {
    if (each.cleared || each.ticket == ticket || each.rank != failure.rank ||
        each.cause != failure.cause)
      continue;
    each.cleared = true;
    cleared.push_back(each);
  }
  if (round.costs.size() >= kMaxCosts && !round.costs.contains(ticket)) return cleared;
  NodeCost& cost = round.costs[ticket];
  ++cost.restarts;
  cost.rank = failure.rank;
  cost.cause = failure.cause;
  return cleared;
}

std::string why_aside(const State& state, const Config& config, const RoundDocument& round,
                      const std::string& ticket, const std::string& host) {
  if (const auto listed = config.excluded_hosts.find(host); listed != config.excluded_hosts.end())
    return listed->second;
  if (config.exclude_after <= 0) return {};
  for (const SetAside& each : round.set_aside)
    if (each.ticket == ticket && !each.cleared) return each.why;
  if (const auto cost = round.costs.find(ticket);
      cost != round.costs.end() && failed_by_itself(state, config, round, ticket, cost->second))
    return "its workers failed first in " + counted(cost->second.restarts, "round") +
           ", last rank " + std::to_string(cost->second.rank) + ": " + cost->second.cause;
  if (const auto lost = round.lost_hosts.find(host);
      lost != round.lost_hosts.end() && lost->second >= config.exclude_after)
    return "it was lost " + std::to_string(lost->second) + " times";
  return {};
}

std::vector<SetAside> take_set_aside(const State& state, const Config& config,
                                     const std::vector<Candidate>& candidates,
                                     const std::vector<Candidate>& chosen, RoundDocument& round) {
  std::set<std::string_view> taken;
  for (const Candidate& each : chosen)
    taken.insert(*each.ticket);
  std::vector<SetAside> found;
  for (const Candidate& each : candidates) {
    if (!each.aside || taken.contains(*each.ticket) || is_set_aside(round, *each.ticket)) continue;
    if (round.set_aside.size() >= kMaxCosts) break;
    SetAside aside{*each.ticket, each.document->host,
                   why_aside(state, config, round, *each.ticket, each.document->host), -1, ""};
    if (const auto cost = round.costs.find(*each.ticket); cost != round.costs.end()) {
      aside.rank = cost->second.rank;
      aside.cause = cost->second.cause;
    }
    round.set_aside.push_back(aside);
    found.push_back(std::move(aside));
  }
  return found;
}

}  // namespace drun::rendezvous
