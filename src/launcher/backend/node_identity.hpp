// This node, as the others of the job see it.
#pragma once

#include <cstdint>
#include <string>

namespace drun::launcher {

struct NodeIdentity {
  std::string host_name;
  std::string ticket;   // unique per agent process; the same to each store that it comes to
  std::string address;  // what becomes MASTER_ADDR when this node has group rank 0
  std::uint16_t worker_store_port = 0;  // what becomes MASTER_PORT then; 0: found when it is needed
  std::uint16_t successor_port = 0;     // held for a store that succeeds another; 0: none
  int listed = -1;                      // which of several endpoints is this node's; -1: none
  bool hosting = false;                 // the rendezvous store is in this process
};

}  // namespace drun::launcher
