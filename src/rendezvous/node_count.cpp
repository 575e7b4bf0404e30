#include "rendezvous/node_count.hpp"

#include <algorithm>

namespace drun::rendezvous {

int nodes_taken(const Config& config, int there) {
  if (there < config.min_nodes) return 0;
  const int most = std::min(there, config.max_nodes);
  return most - most % config.node_step;
}

bool makes_larger(const Config& config, int running, int joiners) {
  return joiners > 0 && nodes_taken(config, running + joiners) > running;
}

}  // namespace drun::rendezvous
