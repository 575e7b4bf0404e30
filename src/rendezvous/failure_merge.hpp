// Merges the failures of several nodes into one report: the first is the root cause, the others are
// listed with it, grouped by cause. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// Adds a rank that failed by itself to the group with the same cause and last words. Groups stay in
// the order of their lowest ranks, the ranges of a group apart and in order.
void add_failed(std::vector<FailedRanks>& groups, RankRange ranks, const std::string& cause,
                const std::string& last_words);

// The first of `failures`, which are one for each node in the order of their arrival and not empty,
// with all other ranks of the job that failed.
[[nodiscard]] FailureSummary merge_failures(std::span<const FailureSummary> failures);

}  // namespace drun::rendezvous
