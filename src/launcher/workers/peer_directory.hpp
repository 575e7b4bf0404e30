// Where the ranks of a round can listen, for programs that must know it before they start
// (TF_CONFIG). Implemented by the agent; tests put a fake in its place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

class PeerDirectory {
 public:
  using Places = std::vector<std::string>;  // by rank: "10.0.0.1:11203"
  using Done = std::function<void(Result<Places>)>;

  PeerDirectory() = default;
  PeerDirectory(const PeerDirectory&) = delete;
  PeerDirectory& operator=(const PeerDirectory&) = delete;
  virtual ~PeerDirectory() = default;

  // Keeps a port for each of this node's workers and asks the other nodes for theirs. Answers once,
  // never from inside the call, when all have said theirs.
  virtual void ask(const rendezvous::Assignment& assignment, int workers, Done done) = 0;
  // The workers start, and need the ports; or nobody wants to know any more.
  virtual void let_go() = 0;
};

}  // namespace drun::launcher
