// Provides MASTER_ADDR and MASTER_PORT for rounds in which this node has group rank 0: a workers'
// store in this agent, or a free port that the worker of rank 0 binds itself. In any round the way
// of this node's workers to it, if that leads through this agent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/options/options.hpp"
#include "store/relay/relay.hpp"

namespace drun::launcher {

class WorkerStoreHost {
 public:
  // The references must outlive this.
  WorkerStoreHost(const Options& options, HostedStore& store) : options_(options), store_(store) {}

  // Binds the port of the workers' store, to keep, at the address that others reach this machine
  // by. Nothing is bound if rank 0's worker is to do that.
  Status bind(const std::string& address);
  // The rendezvous store's port, which is bound already, is the workers' store's too.
  void share(const Endpoint& rendezvous) { place_ = rendezvous; }
  // As at the beginning.
  void start_over() { place_ = {}; }
  // Makes ready what MASTER_PORT will name, and returns the port: the workers' store, empty and
  // served from `io`'s next turns on, or a port that the worker of rank 0 can bind.
  [[nodiscard]] Result<std::uint16_t> prepare(asio::io_context& io);
  // The round's store is there: where this node's workers reach it, if not at that very place.
  // Connections of an earlier round end.
  [[nodiscard]] Result<std::optional<Endpoint>> relay_to(const Endpoint& store);
  void end_relay() { relay_.reset(); }

  // Where the others reach it; port 0: it is found by prepare().
  [[nodiscard]] const Endpoint& place() const { return place_; }

 private:
  const Options& options_;
  HostedStore& store_;
  Endpoint place_;
  std::optional<store::Relay> relay_;
};

}  // namespace drun::launcher
