// Which nodes try to reach which. Pure.
#pragma once

#include <vector>

namespace drun::doctor {

// Up to so many nodes each tries all others.
inline constexpr int kAllPairs = 64;

// Whom this node tries, in order: all others, or of more nodes those that a ring and a hypercube
// connect it with. Each node is tried by others then, and a broken way shows at its end.
[[nodiscard]] std::vector<int> peers_of(int node, int nodes);

// With whom it measures latency and bandwidth: the next in the ring; -1: it is alone.
[[nodiscard]] int neighbour_of(int node, int nodes);

}  // namespace drun::doctor
