// What the ranks of a job have used: as the nodes tell it to the one that sums it up, and as a
// table for people. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "drun/status/job_status.hpp"

namespace drun::jobs {

using status::RankUsage;

// usage/<ticket>, with the session of its agent: what the workers of a node used in a round.
struct NodeUsage {
  int round = 0;
  int group_rank = 0;
  std::string host;
  std::vector<RankUsage> ranks;

  bool operator==(const NodeUsage&) const = default;
};

// Before these keys of a job, behind its prefix.
inline constexpr std::string_view kUsageKeys = "usage/";

// One line of JSON, some 60 bytes for each rank.
[[nodiscard]] std::string encode(const NodeUsage& usage);
// What comes from the store is not trusted.
[[nodiscard]] Result<NodeUsage> decode_usage(std::string_view text);

// Lines: the median, the lowest and the highest of everything, and then which ranks used much more
// or less than most. `ranks`: of the round, some of which may not have told. Nothing in it can act
// on a terminal.
[[nodiscard]] std::vector<std::string> usage_table(const std::vector<NodeUsage>& nodes,
                                                   std::size_t ranks);

}  // namespace drun::jobs
