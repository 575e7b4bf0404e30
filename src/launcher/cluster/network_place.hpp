// Where a node is in the network: the switches above it, from the top, with a '/' between them. So
// that nodes which are close there can be neighbours in rank. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"

namespace drun::launcher::cluster {

// From SLURM_TOPOLOGY_ADDR ("spine1.leaf4.node7") and SLURM_TOPOLOGY_ADDR_PATTERN
// ("switch.switch.node"): "spine1/leaf4". Empty: Slurm knows no switches.
[[nodiscard]] std::string network_place(std::string_view address, std::string_view pattern);

// From a file as Slurm's topology.conf, of its tree or its block plugin:
//   SwitchName=leaf4 Nodes=node[0-15]
//   SwitchName=spine1 Switches=leaf[0-7]
//   BlockName=b1 Nodes=node[0-3]
// `names`: what this node may be called there, the likeliest first. The error says what cannot be
// read, or that the node is not there.
[[nodiscard]] Result<std::string> network_place_in(std::string_view file,
                                                   const std::vector<std::string>& names);

}  // namespace drun::launcher::cluster
