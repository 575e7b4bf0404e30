// The stores that this agent hosts: the rendezvous store, and the workers' store of a round in
// which it has group rank 0. One server, one thread, which starts when it is first needed; the
// agent reaches it over TCP like everybody else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "drun/store/server.hpp"

namespace drun::launcher {

class HostedStore {
 public:
  explicit HostedStore(const store::ServerOptions& options = {}) : options_(options) {}
  HostedStore(const HostedStore&) = delete;
  HostedStore& operator=(const HostedStore&) = delete;
  ~HostedStore() { end(); }

  // Before start_serving(). The rendezvous store; with `workers_too` TCPStore clients of the same
  // port get the workers' store.
  Result<Endpoint> bind_rendezvous(const Endpoint& endpoint, bool workers_too);
  // Before start_serving(). Holds the port of the workers' store; it refuses connections until the
  // first reset_worker_store().
  Result<Endpoint> bind_worker_store(const Endpoint& endpoint);

  // Starts the thread, if it does not run yet.
  void start_serving();
  // Starts it when the first client comes, as `io`'s thread then learns. Until stop_waiting() this
  // keeps `io` running, which must outlive this.
  void start_serving_on_demand(asio::io_context& io);
  void stop_waiting() { first_client_.reset(); }
  // Nobody has come since start_serving_on_demand().
  [[nodiscard]] bool awaits_client() const { return first_client_.has_value(); }
  // Stops serving, unless a key of the rendezvous store is needed; whether it does: see
  // store::Server. After start_serving().
  [[nodiscard]] bool stop_unless(const std::function<bool(std::string_view key)>& needed) {
    return server_->stop_unless(needed);
  }
  // The job's store is there: see store::Server. After start_serving().
  void point_to(std::uint64_t generation, const Endpoint& store) {
    (void)server_->point_to(generation, store);
  }
  // Stops serving and lets go of all ports; all connections end. Afterwards only the destructor may
  // be called, and this.
  void end();
  // The same, but as if it had bound nothing yet.
  void start_over();
  // Empties the workers' store and drops its connections; it listens from then on. An error: it
  // cannot listen.
  Status reset_worker_store();

 private:
  const store::ServerOptions options_;
  std::unique_ptr<store::Server> server_ = std::make_unique<store::Server>(options_);
  std::thread thread_;
  std::optional<asio::posix::stream_descriptor> first_client_;
};

// Where a store listens that others reach by `host`: on this very address if it is one of this
// machine's; else, with an empty host, on all of them. A name may mean other addresses elsewhere:
// Debian's own host name is 127.0.1.1 at home.
[[nodiscard]] Endpoint listen_endpoint(const std::string& host, std::uint16_t port);

}  // namespace drun::launcher
