#include "store/protocol/vote.hpp"

#include <algorithm>

namespace drun::store {
namespace {

bool is_sound_place(const Place& place) {
  const auto fits = [&](std::uint32_t rank) { return rank == kNoRank || rank < place.nodes; };
  return place.nodes > 0 && place.nodes < kNoRank && fits(place.rank) && fits(place.casting);
}

}  // namespace

bool is_sound(const Vote& vote) {
  if (vote.later.size() > kMostPlaces) return false;
  const bool knows_settled = vote.settled.nodes > 0;
  if (knows_settled ? !is_sound_place(vote.settled) : vote.settled != Place{}) return false;
  const Place* before = knows_settled ? &vote.settled : nullptr;
  for (const Place& place : vote.later) {
    if (!is_sound_place(place)) return false;
    if (before != nullptr && place.electorate <= before->electorate) return false;
    before = &place;
  }
  return true;
}

// Who has no place yet has nothing to say about a round without it. Of the rounds of others it
// knows what is settled at a store with a majority; what else is said there may be of a job that is
// lost, and would go from store to store.
void Voter::give(const Place& place) {
  if (!is_sound_place(place)) return;
  if (place.rank == kNoRank && vote_.latest().nodes == 0) return;
  Place& latest = vote_.later.empty() ? vote_.settled : vote_.later.back();
  if (latest.electorate == place.electorate && latest.nodes == place.nodes &&
      latest.rank == kNoRank)
    latest.rank = place.rank;  // it was not known at first
  if (vote_.latest().nodes > 0 && place.electorate <= vote_.latest().electorate) return;
  // Beyond the limit they only say that it was passed.
  if (!is_lost()) vote_.later.push_back(place);
}

void Voter::settle(const Place& electorate) {
  if (!is_sound_place(electorate)) return;
  if (vote_.settled.nodes > 0 && electorate.electorate <= vote_.settled.electorate) return;
  const auto mine = std::find_if(vote_.later.begin(), vote_.later.end(), [&](const Place& place) {
    return place.electorate >= electorate.electorate;
  });
  if (mine != vote_.later.end() && mine->electorate == electorate.electorate) {
    vote_.settled = *mine;
    vote_.later.erase(vote_.later.begin(), mine + 1);
    return;
  }
  vote_.settled = electorate;
  vote_.settled.rank = kNoRank;
  vote_.later.erase(vote_.later.begin(), mine);
}

}  // namespace drun::store
