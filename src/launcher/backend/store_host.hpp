// The stores that this agent carries: the rendezvous store where it is the host, and the workers'
// store of a round in which it has group rank 0. One server, one thread, which starts when it is
// first needed; the agent reaches it over TCP like everybody else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/server.hpp"

namespace drun::launcher {

class StoreHost {
 public:
  StoreHost() = default;
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;
  ~StoreHost() { end(); }

  // Before serve(). The rendezvous store; with `workers_too` TCPStore clients of the same port get
  // the workers' store.
  Result<Endpoint> carry_rendezvous(const Endpoint& endpoint, bool workers_too);
  // Before serve(). Holds the port of the workers' store; it refuses connections until the first
  // reset_workers().
  Result<Endpoint> carry_workers(const Endpoint& endpoint);

  // Starts the thread.
  void serve();
  // Starts it when the first client comes, as `io`'s thread then learns, or at once where there is
  // a rendezvous store. Until stop_waiting() this keeps `io` running, which must outlive this.
  void serve_on_demand(asio::io_context& io);
  void stop_waiting() { first_client_.reset(); }
  // Stops serving, unless a key of the rendezvous store is needed; whether it does: see
  // store::Server. After serve().
  [[nodiscard]] bool stop_unless(const std::function<bool(std::string_view key)>& needed) {
    return server_->stop_unless(needed);
  }
  // Stops serving and lets go of all ports; all connections end. Afterwards only the destructor may
  // be called, and this.
  void end();
  // Lets go of all ports, as if it had carried nothing yet. Not after serve().
  void start_over();
  // Empties the workers' store and drops its connections; it listens from then on. An error: it
  // cannot listen.
  Status reset_workers();

 private:
  std::unique_ptr<store::Server> server_ = std::make_unique<store::Server>();
  std::thread thread_;
  std::optional<asio::posix::stream_descriptor> first_client_;
};

}  // namespace drun::launcher
