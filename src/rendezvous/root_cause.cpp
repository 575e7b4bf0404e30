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

// The group of other ranks of the node that hang as fewer do than its first rank; or none of them.
const FailedRanks* rarest_other(const FailureSummary& failure, const Alike& alike) {
  const FailedRanks* rarest = nullptr;
  int least = rarity(failure.clue, alike.at(failure.cause));
  for (const FailedRanks& group : failure.others) {
    if (group.pid == 0 || group.cause == failure.cause || alike.at(group.cause) >= least) continue;
    least = alike.at(group.cause);
    rarest = &group;
  }
  return rarest;
}

}  // namespace

bool is_nearer(const HangClue& a, const HangClue& b) {
  const auto place = [](const HangClue& clue) {
    return std::tuple(!clue.behind, !clue.for_own_child, rarity(clue, clue.alike), clue.for_others);
  };
  return place(a) < place(b);
}

std::size_t find_root(std::span<const FailureSummary* const> failures) {
  if (!failures.front()->hung) return 0;
  const Alike alike = count_alike(failures);
  const bool all_tell_steps =
      std::all_of(failures.begin(), failures.end(),
                  [](const FailureSummary* each) { return !each->hung || each->clue.step; });
  const auto rarest = [&](const FailureSummary* each) {
    if (!each->hung) return 0;
    const FailedRanks* const other = rarest_other(*each, alike);
    return other != nullptr ? alike.at(other->cause) : rarity(each->clue, alike.at(each->cause));
  };
  const auto place = [&](const FailureSummary* each) {
    const HangClue& clue = each->clue;
    return std::tuple(!each->hung, !clue.behind, !clue.for_own_child,
                      all_tell_steps ? clue.step.value_or(0) : 0, rarest(each), clue.for_others);
  };
  const auto root = std::min_element(
      failures.begin(), failures.end(),
      [&](const FailureSummary* a, const FailureSummary* b) { return place(a) < place(b); });
  return static_cast<std::size_t>(root - failures.begin());
}

void name_rarest(FailureSummary& root, std::span<const FailureSummary* const> failures) {
  if (!root.hung || root.clue.behind || root.clue.for_own_child || root.clue.step) return;
  const FailedRanks* const rarest = rarest_other(root, count_alike(failures));
  if (rarest == nullptr) return;
  const FailedRanks named = *rarest;
  const int rank = named.ranks.front().first;
  const FailureSummary before = root;
  auto& group = root.others[static_cast<std::size_t>(rarest - root.others.data())];
  root.clue.alike = add_ranks(0, group);
  if (++group.ranks.front().first > group.ranks.front().last)
    group.ranks.erase(group.ranks.begin());
  group.pid = 0;  // of the next one it is not known
  std::erase_if(root.others, [](const FailedRanks& each) { return each.ranks.empty(); });
  add_failed(root.others, {before.rank, before.rank}, before.cause, before.last_words, before.pid);
  root.local_rank += rank - root.rank;
  root.rank = rank;
  root.pid = named.pid;
  root.cause = named.cause;
  root.last_words = named.last_words;
  // These are the other one's.
  root.traceback.clear();
  root.tail.clear();
  root.log_file.clear();
  root.core_file.clear();
}

}  // namespace drun::rendezvous
