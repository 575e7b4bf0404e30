#include "rendezvous/restored_electorate.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace drun::rendezvous {
namespace {

// What one source knows about whose majority counts.
struct Latest {
  Place place;
  Place before;
  std::string store_host;
};

std::vector<Latest> all_latest(const State& state, const FoundKeys& found, const State* previous,
                               const RoundDocument& seen) {
  std::vector<Latest> all;
  const auto add = [&](const RoundDocument& round) {
    all.push_back({round.latest, round.before, round.store_host});
  };
  add(state.round);
  add(seen);
  if (previous != nullptr) add(previous->round);
  for (const auto& member : found.members)
    all.push_back({member.document.latest, member.document.latest, ""});
  return all;
}

// If the founders of several endpoints lose their first store and begin another one, each store may
// have a first round with an origin of its own. At most one of the two was settled; the nodes of
// the other have started nothing and come to this store in the end, so its place counts for nothing
// here. The origin that counts is that of this store's own round or, if it has none yet, that of
// the settled one.
void choose_latest(State& state, const std::vector<Latest>& all) {
  const bool has_own = state.round_written && state.round.latest.exists();
  const Place root = has_own ? state.round.latest : Place{state.succession.settled_era};
  const auto counts_less = [&](const Latest& a, const Latest& b) {
    const bool a_counts = root.exists() && a.place.same_origin(root);
    const bool b_counts = root.exists() && b.place.same_origin(root);
    return a_counts != b_counts ? b_counts : a.place.before(b.place);
  };
  const Latest& latest = *std::max_element(all.begin(), all.end(), counts_less);
  state.latest_written = state.round_written && latest.place.same_round(state.round.latest);
  state.round.latest = latest.place;
  state.round.before = latest.before;
  state.round.store_host = latest.store_host;
  state.round.latest.rank = state.round.before.rank = -1;
  for (const Latest& each : all) {
    if (!is_unknown(state, state.round.latest, each.place)) continue;
    std::erase_if(state.others, [&](const Place& at) { return at.same_origin(each.place); });
    state.others.push_back(each.place);
  }
}

}  // namespace

void find_latest(State& state, const FoundKeys& found, const State* previous,
                 const RoundDocument& seen) {
  choose_latest(state, all_latest(state, found, previous, seen));
  if (!state.succession.is_later()) return;
  const auto wait_for = [&](const Place& place) {
    for (int rank = 0; rank < place.nodes; ++rank)
      state.unheard.insert({place.era, place.round, rank});
  };
  wait_for(state.round.latest);
  std::for_each(state.others.begin(), state.others.end(), wait_for);
  const auto hear = [&](const Place& place) {
    state.unheard.erase({place.era, place.round, place.rank});
  };
  for (const auto& member : found.members)
    hear(member.document.latest);
  for (const Place& place : found.gone) {
    hear(place);
    state.dead_places.emplace(place.round, place.rank);
  }
  // A node that was here once and is not any more has ended its session here.
  if (previous == nullptr || previous->epoch != state.epoch) return;
  const auto was_known = [&](const Place& place) {
    const auto& others = previous->others;
    return place.same_round(previous->round.latest) ||
           std::any_of(others.begin(), others.end(),
                       [&](const Place& other) { return place.same_round(other); });
  };
  std::erase_if(state.unheard, [&](const Place& place) {
    return was_known(place) && !previous->unheard.contains(place);
  });
}

void wait_for_unheard(State& state, Time now) {
  if (now >= state.succession.sure_from) state.unheard.clear();
  if (state.unheard.empty()) return;
  state.grace_until = state.unsure_until = state.succession.sure_from;
}

}  // namespace drun::rendezvous
