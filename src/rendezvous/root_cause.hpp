// Which of the failures of several nodes is the root cause. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// Of two ranks of a node that hang, whether the first is rather the one that the others wait for.
[[nodiscard]] bool is_nearer(const HangClue& a, const HangClue& b);

// `failures` are one for each node, in the order of their arrival, and neither empty nor null. As a
// rule it is the first. If that is of a rank that hangs, which node noticed it first says nothing:
// then it is, of all that hang, one that is behind; else one that waits for a process of its own;
// else the one with the lowest step, if all tell one; else one with a rank that hangs as the fewest
// ranks of all nodes do, because many wait for one, and rather one that waits for no other rank.
[[nodiscard]] std::size_t find_root(std::span<const FailureSummary* const> failures);
// Whether that rank is another than the one that its node has taken for the root cause, which could
// not know what hangs on other nodes: then the two change places in `root`, one of `failures`.
void name_rarest(FailureSummary& root, std::span<const FailureSummary* const> failures);

}  // namespace drun::rendezvous
