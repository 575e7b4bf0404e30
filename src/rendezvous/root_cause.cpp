#include "rendezvous/root_cause.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "rendezvous/failure_merge.hpp"

namespace drun::rendezvous {
namespace {

// By cause: how many ranks of all nodes hang for it.
using Alike = std::unordered_map<std::string_view, int>;

Alike count_alike(std::span<const FailureSummary* const> failures) {
  Alike alike;
  for (const FailureSummary* each : failures) {
    if (!each->hung) continue;
    int& own = alike[each->cause];
    own = std::min(kMaxRanks, own + each->clue.alike);
    for (const FailedRanks& group : each->others) {
      if (group.cause == each->cause) continue;
      int& other = alike[group.cause];
      other = add_ranks(other, group);
    }
  }
  return alike;
}

// Of what nothing is known there may be many.
int rarity(const HangClue& clue, int alike) {
  return clue.alike > 0 ? alike : std::numeric_limits<int>::max();
}

}  // namespace

bool is_nearer(const HangClue& a, const HangClue& b) {
  const auto place = [](const HangClue& clue) {
    return std::tuple(!clue.behind, rarity(clue, clue.alike));
  };
  return place(a) < place(b);
}

std::size_t find_root(std::span<const FailureSummary* const> failures) {
  if (!failures.front()->hung) return 0;
  const Alike alike = count_alike(failures);
  const bool all_tell_steps =
      std::all_of(failures.begin(), failures.end(),
                  [](const FailureSummary* each) { return !each->hung || each->clue.step; });
  const auto place = [&](const FailureSummary* each) {
    const HangClue& clue = each->clue;
    return std::tuple(!each->hung, !clue.behind, all_tell_steps ? clue.step.value_or(0) : 0,
                      each->hung ? rarity(clue, alike.at(each->cause)) : 0);
  };
  const auto root = std::min_element(
      failures.begin(), failures.end(),
      [&](const FailureSummary* a, const FailureSummary* b) { return place(a) < place(b); });
  return static_cast<std::size_t>(root - failures.begin());
}

}  // namespace drun::rendezvous
