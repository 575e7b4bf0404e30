#include "rendezvous/failure_merge.hpp"

#include <algorithm>

namespace drun::rendezvous {
namespace {

void add_range(std::vector<RankRange>& ranges, RankRange added) {
  ranges.push_back(added);
  std::sort(ranges.begin(), ranges.end(),
            [](const RankRange& a, const RankRange& b) { return a.first < b.first; });
  std::vector<RankRange> joined;
  for (const auto& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  ranges = std::move(joined);
}

}  // namespace

void add_failed(std::vector<FailedRanks>& groups, RankRange ranks, const std::string& cause,
                const std::string& last_words) {
  auto group = std::find_if(groups.begin(), groups.end(), [&](const FailedRanks& each) {
    return each.cause == cause && each.last_words == last_words;
  });
  if (group == groups.end()) group = groups.insert(groups.end(), {{}, cause, last_words});
  add_range(group->ranks, ranks);
  std::sort(groups.begin(), groups.end(), [](const FailedRanks& a, const FailedRanks& b) {
    return a.ranks.front().first < b.ranks.front().first;
  });
}

FailureSummary merge_failures(std::span<const FailureSummary> failures) {
  FailureSummary root = failures.front();
  for (const auto& other : failures.subspan(1)) {
    add_failed(root.others, {other.rank, other.rank}, other.cause, other.last_words);
    for (const auto& group : other.others)
      for (const auto& ranks : group.ranks)
        add_failed(root.others, ranks, group.cause, group.last_words);
    root.highest_code = std::max({root.highest_code, other.highest_code, other.shell_code()});
    if (other.lowest_rank >= 0 && (root.lowest_rank < 0 || other.lowest_rank < root.lowest_rank)) {
      root.lowest_rank = other.lowest_rank;
      root.lowest_code = other.lowest_code;
    }
  }
  return root;
}

}  // namespace drun::rendezvous
