// What an agent tells the others about its node.
#pragma once

#include <cstdint>
#include <string>

namespace drun::launcher {

// This node, as the others see it.
struct NodeIdentity {
  std::string host_name;
  std::string address;            // what becomes MASTER_ADDR when this node has group rank 0
  std::uint16_t worker_port = 0;  // of this agent's workers' store
  bool hosting = false;           // the store is in this process
};

}  // namespace drun::launcher
