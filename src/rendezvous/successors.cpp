#include "rendezvous/successors.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fnv1a.hpp"
#include "rendezvous/messages.hpp"

namespace drun::rendezvous {
namespace {

// They begin a store in turn when this one is lost: those where the job's nodes look first, in the
// order of the endpoints, then the next node after the store's, by rank, and others that are spread
// evenly over the ranks: neighbours in rank often share a rack, and are lost together. `nodes` by
// rank.
std::vector<Successor> successors(const DecisionContext& c,
                                  const std::vector<const MemberDocument*>& nodes, int casting) {
  std::vector<const MemberDocument*> able;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const MemberDocument* node = nodes[(i + static_cast<std::size_t>(casting + 1)) % nodes.size()];
    if (node != nullptr && !node->is_host && node->successor_port != 0) able.push_back(node);
  }
  std::stable_sort(able.begin(), able.end(), [](const auto* a, const auto* b) {
    return a->listed >= 0 && (b->listed < 0 || a->listed < b->listed);
  });
  const auto unlisted = static_cast<std::size_t>(
      std::count_if(able.begin(), able.end(), [](const auto* node) { return node->listed < 0; }));
  const std::size_t count =
      std::min(able.size(), static_cast<std::size_t>(std::max(c.config.successors, 0)));
  const std::size_t first = std::min(count, able.size() - unlisted);  // of those to spread
  std::vector<Successor> list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i < first ? i : first + (i - first) * unlisted / (count - first);
    list.push_back({able[at]->address, able[at]->successor_port});
  }
  return list;
}

// Of the round that begins. If a store was lost before anybody had heard of its round, and another
// one begins in its place, both have a first round: what is said of the lost one must not count
// here, and agents that were told of it must take this one for the later.
std::int64_t era(const DecisionContext& c) {
  const State& s = c.state;
  const std::string leadership = c.config.ticket + "." + std::to_string(s.epoch);
  const Place& latest = c.decision.round.latest;
  const std::int64_t origin = latest.exists()
                                  ? latest.era % kOrigins
                                  : static_cast<std::int64_t>(fnv1a(leadership) % kOrigins);
  std::int64_t era = s.succession.generation * kOrigins + origin;
  for (const Place& other : s.others)
    era = std::max(era, other.era);
  return era;
}

}  // namespace

// Whose majority says from now on which store is the right one. The same as before if the nodes
// are: then nobody needs to hear of it first.
void choose_electorate(DecisionContext& c) {
  const State& s = c.state;
  RoundDocument& round = c.round();
  if (c.config.successors <= 0 || s.succession.generation <= 0) return;
  std::vector<const MemberDocument*> nodes;
  int casting = -1;
  std::string store_host;
  bool same =
      s.slots.size() == s.plan.size() && round.latest.nodes == static_cast<int>(s.plan.size());
  for (const auto& [ticket, place] : s.plan) {
    const auto member = s.members.find(ticket);
    nodes.push_back(member == s.members.end() ? nullptr : &member->second.document);
    if (nodes.back() != nullptr && nodes.back()->is_host) {
      casting = place.group_rank;
      store_host = nodes.back()->host.substr(0, kMaxName);
    }
    const auto slot = s.slots.find(ticket);
    same = same && slot != s.slots.end() && slot->second.group_rank == place.group_rank;
  }
  round.successors = successors(c, nodes, casting);
  round.store_host = std::move(store_host);
  if (same && round.latest.casting == casting) return;
  round.before = round.latest;
  round.latest = {era(c), round.number, -1, round.nodes, casting};
}

void find_successors(DecisionContext& c) {
  const State& s = c.state;
  if (!s.succession.is_later() || c.config.successors <= 0 || !c.round().latest.exists()) return;
  std::vector<const MemberDocument*> nodes(s.slots.size() + static_cast<std::size_t>(s.vacant));
  int casting = -1;
  for (const auto& [ticket, slot] : s.slots) {
    const auto member = s.members.find(ticket);
    if (member == s.members.end() || slot.group_rank >= static_cast<int>(nodes.size())) continue;
    nodes[static_cast<std::size_t>(slot.group_rank)] = &member->second.document;
    if (member->second.document.is_host) casting = slot.group_rank;
  }
  // The old successors stay, except the one that serves now: not every agent may hear of new ones
  // before this store is lost, and all must go to the same place.
  std::vector<Successor> list;
  const auto own = s.members.find(c.config.ticket);
  const bool hosts = own != s.members.end() && own->second.document.is_host;
  for (const Successor& old : s.round.successors)
    if (!hosts || old.address != c.config.address || old.port != c.config.successor_port)
      list.push_back(old);
  for (const Successor& next : successors(c, nodes, casting)) {
    if (static_cast<int>(list.size()) >= c.config.successors) break;
    if (std::find(list.begin(), list.end(), next) == list.end()) list.push_back(next);
  }
  c.round().successors = std::move(list);
}

}  // namespace drun::rendezvous
