#include "rendezvous/root_cause.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "rendezvous/failure_merge.hpp"

namespace drun::rendezvous {
namespace {

// By cause or by stack: how many ranks of all nodes hang so.
using Alike = std::unordered_map<std::string_view, int>;

std::string_view by_cause(const std::string& cause, const HangPlace& /*place*/) {
  return cause;
}

std::string_view by_frame(const std::string& cause, const HangPlace& place) {
  return place.frame.empty() ? cause : place.frame;
}

// Who hangs like whom, as a node counts it for its own ranks: who is elsewhere by its stack tells
// more than another system call, which stands in the cause.
class Crowds {
 public:
  explicit Crowds(std::span<const FailureSummary* const> failures) {
    for (const FailureSummary* each : failures) {
      if (!each->hung) continue;
      note_call(each->clue.place);
      for (const FailedRanks& group : each->others)
        note_call(group.place);
    }
    alike_ = count(failures, by_frame);
    if (alike_.size() > 1) return;
    key_ = by_cause;
    alike_ = count(failures, by_cause);
  }

  // Of what nothing is known there may be many.
  [[nodiscard]] int rarity(const FailureSummary& first) const {
    const HangClue& clue = first.clue;
    return clue.alike > 0 ? rarity(first.cause, clue.place) : std::numeric_limits<int>::max();
  }
  [[nodiscard]] int rarity(const FailedRanks& group) const {
    return group.pid != 0 ? rarity(group.cause, group.place) : std::numeric_limits<int>::max();
  }

 private:
  using Key = std::string_view (*)(const std::string& cause, const HangPlace& place);

  void note_call(const HangPlace& place) {
    if (!place.frame.empty()) calls_.insert(place.call);
  }
  // Nobody knows its stack, and it waits in the system call of a rank whose stack is known: it may
  // be where that one is.
  [[nodiscard]] bool may_be_anywhere(const HangPlace& place) const {
    return place.frame.empty() && !place.call.empty() && calls_.contains(place.call);
  }
  [[nodiscard]] int rarity(const std::string& cause, const HangPlace& place) const {
    return may_be_anywhere(place) ? std::numeric_limits<int>::max() : alike_.at(key_(cause, place));
  }
  [[nodiscard]] Alike count(std::span<const FailureSummary* const> failures, Key key) const {
    Alike alike;
    for (const FailureSummary* each : failures) {
      if (!each->hung) continue;
      const bool known = !may_be_anywhere(each->clue.place);
      const std::string_view own = key(each->cause, each->clue.place);
      int same = 1;
      for (const FailedRanks& group : each->others) {
        if (may_be_anywhere(group.place)) continue;
        const std::string_view there = key(group.cause, group.place);
        int& counted = known && there == own ? same : alike[there];
        counted = add_ranks(counted, group);
      }
      if (!known) continue;
      int& counted = alike[own];
      counted = std::min(kMaxRanks, counted + std::max(same, each->clue.alike));
    }
    return alike;
  }

  std::unordered_set<std::string_view> calls_;  // of ranks whose stack is known
  Key key_ = by_frame;
  Alike alike_;
};

// Of what nothing is known there may be many.
int rarity(const HangClue& clue) {
  return clue.alike > 0 ? clue.alike : std::numeric_limits<int>::max();
}

// The group of other ranks of the node that hang as fewer do than its first rank; or none of them.
const FailedRanks* rarest_other(const FailureSummary& failure, const Crowds& crowds) {
  const FailedRanks* rarest = nullptr;
  int least = crowds.rarity(failure);
  for (const FailedRanks& group : failure.others) {
    if (group.cause == failure.cause || crowds.rarity(group) >= least) continue;
    least = crowds.rarity(group);
    rarest = &group;
  }
  return rarest;
}

}  // namespace

bool is_nearer(const HangClue& a, const HangClue& b) {
  const auto place = [](const HangClue& clue) {
    return std::tuple(!clue.behind, !clue.for_own_child, rarity(clue), clue.for_others);
  };
  return place(a) < place(b);
}

std::size_t find_root(std::span<const FailureSummary* const> failures) {
  if (!failures.front()->hung) return 0;
  const Crowds crowds(failures);
  const bool all_tell_steps =
      std::all_of(failures.begin(), failures.end(),
                  [](const FailureSummary* each) { return !each->hung || each->clue.step; });
  const auto rarest = [&](const FailureSummary* each) {
    if (!each->hung) return 0;
    const FailedRanks* const other = rarest_other(*each, crowds);
    return other != nullptr ? crowds.rarity(*other) : crowds.rarity(*each);
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
  const FailedRanks* const rarest = rarest_other(root, Crowds(failures));
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
  add_failed(root.others, {before.rank, before.rank}, before.cause, before.last_words, before.pid,
             before.clue.place);
  root.local_rank += rank - root.rank;
  root.rank = rank;
  root.pid = named.pid;
  root.cause = named.cause;
  root.clue.place = named.place;
  root.last_words = named.last_words;
  // These are the other one's.
  root.traceback.clear();
  root.tail.clear();
  root.log_file.clear();
  root.core_file.clear();
}

}  // namespace drun::rendezvous
