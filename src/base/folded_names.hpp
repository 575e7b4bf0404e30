// Names of hosts as people write many of them: "gpu[0-10,12], login". Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// Names that differ only in the last number of their first part ("gpu7.cluster.example"; of an
// address, in its last number) share one pair of brackets, as Slurm and ClusterShell write them;
// leading zeros stay: "gpu[008-011]". A name that is there more than once is "vm x3". In natural
// order; after `most` groups, or as many ranges in one pair of brackets, comes "...".
[[nodiscard]] std::string folded_names(const std::vector<std::string_view>& names,
                                       std::size_t most);

}  // namespace drun
