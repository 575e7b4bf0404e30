#include "launcher/local_nodes/node_options.hpp"

namespace drun::launcher {

Options node_options(const Options& options, int node, const Endpoint& store) {
  Options result = options;
  result.endpoint = store;
  result.conf.is_host = false;
  // The order of the nodes is plain then. Nodes beyond the largest number have none and are spares.
  const bool by_network = options.rank_order == rendezvous::RankOrder::Topology;
  if (node < options.max_nodes && !by_network) result.node_rank = node;
  // On one machine only one can have the workers' store at a given port.
  if (node > 0) result.master_port.reset();
  result.local_nodes = 0;
  result.local_node = node;
  return result;
}

}  // namespace drun::launcher
