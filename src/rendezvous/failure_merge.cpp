#include "rendezvous/failure_merge.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace drun::rendezvous {
namespace {

bool starts_first(const RankRange& a, const RankRange& b) {
  return a.first < b.first;
}

bool has_lower_rank(const FailedRanks& a, const FailedRanks& b) {
  return starts_first(a.ranks.front(), b.ranks.front());
}

// In order, and those that touch as one.
void join(std::vector<RankRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), starts_first);
  std::vector<RankRange> joined;
  for (const auto& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  ranges = std::move(joined);
}

// Groups by cause and last words, in any order until they are taken.
class Groups {
 public:
  void add(const std::vector<RankRange>& ranks, const std::string& cause,
           const std::string& last_words) {
    std::string key = cause;
    key += '\0';
    key += last_words;
    const auto [at, is_new] = places_.try_emplace(std::move(key), groups_.size());
    if (is_new) groups_.push_back({{}, cause, last_words});
    auto& all = groups_[at->second].ranks;
    all.insert(all.end(), ranks.begin(), ranks.end());
  }

  // The groups of the lowest ranks; adds to `unlisted` how many ranks are in the rest.
  std::vector<FailedRanks> take(int& unlisted) {
    for (auto& group : groups_)
      join(group.ranks);
    std::sort(groups_.begin(), groups_.end(), has_lower_rank);
    for (std::size_t i = kMaxFailureGroups; i < groups_.size(); ++i)
      unlisted = add_ranks(unlisted, groups_[i]);
    if (groups_.size() > kMaxFailureGroups) groups_.resize(kMaxFailureGroups);
    return std::move(groups_);
  }

 private:
  std::vector<FailedRanks> groups_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

int add_ranks(int counted, const FailedRanks& group) {
  std::int64_t sum = counted;
  for (const auto& range : group.ranks)
    sum += std::int64_t{range.last} - range.first + 1;
  return static_cast<int>(std::min<std::int64_t>(sum, kMaxRanks));
}

void add_failed(std::vector<FailedRanks>& groups, RankRange ranks, const std::string& cause,
                const std::string& last_words) {
  auto group = std::find_if(groups.begin(), groups.end(), [&](const FailedRanks& each) {
    return each.cause == cause && each.last_words == last_words;
  });
  if (group == groups.end()) group = groups.insert(groups.end(), {{}, cause, last_words});
  group->ranks.push_back(ranks);
  join(group->ranks);
  std::sort(groups.begin(), groups.end(), has_lower_rank);
}

FailureSummary merge_failures(std::span<const FailureSummary* const> failures) {
  FailureSummary root = *failures.front();
  Groups groups;
  for (const auto& group : root.others)
    groups.add(group.ranks, group.cause, group.last_words);
  for (const FailureSummary* other : failures.subspan(1)) {
    groups.add({{other->rank, other->rank}}, other->cause, other->last_words);
    for (const auto& group : other->others)
      groups.add(group.ranks, group.cause, group.last_words);
    root.unlisted = std::min(kMaxRanks, root.unlisted + other->unlisted);
    root.highest_code = std::max({root.highest_code, other->highest_code, other->shell_code()});
    if (other->lowest_rank >= 0 &&
        (root.lowest_rank < 0 || other->lowest_rank < root.lowest_rank)) {
      root.lowest_rank = other->lowest_rank;
      root.lowest_code = other->lowest_code;
    }
  }
  root.others = groups.take(root.unlisted);
  return root;
}

FailureSummary without_details(FailureSummary failure) {
  failure.traceback.clear();
  failure.tail.clear();
  for (const auto& group : failure.others)
    failure.unlisted = add_ranks(failure.unlisted, group);
  failure.others.clear();
  return failure;
}

}  // namespace drun::rendezvous
