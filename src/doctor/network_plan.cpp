#include "doctor/network_plan.hpp"

#include <set>

namespace drun::doctor {

std::vector<int> peers_of(int node, int nodes) {
  std::set<int> peers;
  if (nodes <= kAllPairs) {
    for (int other = 0; other < nodes; ++other)
      peers.insert(other);
  } else {
    peers = {(node + 1) % nodes, (node + nodes - 1) % nodes};
    for (int bit = 1; bit < nodes; bit *= 2)
      if ((node ^ bit) < nodes) peers.insert(node ^ bit);
  }
  peers.erase(node);
  return {peers.begin(), peers.end()};
}

int neighbour_of(int node, int nodes) {
  return nodes < 2 ? -1 : (node + 1) % nodes;
}

}  // namespace drun::doctor
