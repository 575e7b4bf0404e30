// The votes of those who may begin a job's first store. Pure.
#pragma once

#include <vector>

#include "store/protocol/vote.hpp"

namespace drun::store {

// The vote without places that mean nothing where these are the founders: those of another list
// speak of other nodes.
[[nodiscard]] inline Vote admitted(const Vote& vote, const Place& founders) {
  Vote result = vote;
  std::erase_if(result.later, [](const Place& place) { return place.electorate.is_founding(); });
  const Place& settled = vote.settled;
  const bool is_other =
      settled.electorate != founders.electorate || settled.nodes != founders.nodes;
  if (settled.electorate.is_founding() && is_other) result.settled = {};
  return result;
}

}  // namespace drun::store
