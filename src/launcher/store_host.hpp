// The stores that this agent carries: the rendezvous store where it is the host, and the workers'
// store of a round in which it has group rank 0. One server, one thread, which starts when it is
// first needed; the agent reaches it over TCP like everybody else.
#pragma once

#include <cstdint>
#include <thread>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/server.hpp"

namespace drun::launcher {

class StoreHost {
 public:
  StoreHost() = default;
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  ~StoreHost();  // stops serving; all connections end

  // Before serve(). The rendezvous store; with `workers_too` TCPStore clients of the same port get
  // the workers' store.
  Result<Endpoint> carry_rendezvous(const Endpoint& endpoint, bool workers_too);
  // Before serve(). Holds the port of the workers' store; it refuses connections until the first
  // reset_workers().
  Result<Endpoint> carry_workers(const Endpoint& endpoint);

  void serve();
  // Empties the workers' store and drops its connections; it listens from then on. Starts the
  // thread when needed. An error: it cannot listen.
  Status reset_workers();

 private:
  store::Server server_;
  std::thread thread_;
};

}  // namespace drun::launcher
