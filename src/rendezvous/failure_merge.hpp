// Merges the failures of several nodes into one report: the first is the root cause, the others are
// listed with it, grouped by cause. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

inline constexpr std::size_t kMaxFailureGroups = 32;

// More ranks than that are nobody's: sums stay below.
inline constexpr int kMaxRanks = 1 << 30;

// `counted` and the ranks of the group, at most kMaxRanks.
[[nodiscard]] int add_ranks(int counted, const FailedRanks& group);

// The rank of the failure and the others in it, at most kMaxRanks.
[[nodiscard]] int count_ranks(const FailureSummary& failure);

// `words` of rank `rank`, with '#' for its own number after the word "rank": "[rank3]: x" and "rank
// 3: x" say the same of rank 3 as "[rank5]: x" and "rank 5: x" of rank 5. A local rank is another
// number.
[[nodiscard]] std::string without_rank(std::string_view words, int rank);

// Adds a rank that failed by itself to the group with the same cause and the same last words, but
// for the rank's own number; the group's are those of its lowest rank. Groups stay in the order of
// their lowest ranks, the ranges of a group apart and in order. `pid`: as FailedRanks'. For the few
// of one node: each call looks at all groups.
void add_failed(std::vector<FailedRanks>& groups, RankRange ranks, const std::string& cause,
                const std::string& last_words, std::int64_t pid = 0, const HangPlace& place = {});

// The first of `failures`, which are one for each node in the order of their arrival and neither
// empty nor null, with the other ranks of the job that failed: at most kMaxFailureGroups groups,
// the rest is counted. Sorts once, so that 100,000 ranks, each with words of its own, cost
// milliseconds.
[[nodiscard]] FailureSummary merge_failures(std::span<const FailureSummary* const> failures);

// Only who failed, how and where: for a store that has no room for more.
[[nodiscard]] FailureSummary without_details(FailureSummary failure);

}  // namespace drun::rendezvous
