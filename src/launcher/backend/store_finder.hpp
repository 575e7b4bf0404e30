// Where the rendezvous store is: nowhere where this agent is alone; else this agent hosts it where
// the endpoint is one of this machine's addresses and no other agent was first; else it is a
// client. Also holds the port of this agent's workers' store.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "launcher/backend/backend_discovery.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/options/options.hpp"

namespace drun::launcher {

class StoreFinder {
 public:
  using Clock = std::chrono::steady_clock;

  // Called from inside find() or from the loop; none after cancel().
  struct Calls {
    // The store is there, or expected there: connect, for at most this long.
    std::function<void(const Endpoint&, Clock::duration limit)> connect;
    std::function<void()> go_alone;                // nobody else can take part: no store is needed
    std::function<void(std::string reason)> fail;  // no use to go on
    std::function<void(std::string reason)> wait;  // not yet; it tries again by itself
  };

  // The references must outlive this. `deadline`: until when the store is looked for.
  StoreFinder(asio::io_context& io, const Options& options, HostedStore& host,
              Clock::time_point deadline, Calls calls);

  // Once; one of connect, go_alone and fail follows.
  void find();
  // The store that this agent was connected to went away before it knew this agent, for this
  // reason: find() again, after a pause; fail past the deadline. Not while hosting().
  void find_again(const std::string& cause);
  // While there is no connection yet: this machine was to carry the store, but the port was taken.
  // True where it is free now; connect, to this agent's own store, or fail was called.
  [[nodiscard]] bool host_after_all();
  void cancel();

  // Binds the port of this agent's workers' store, to keep, at the address that others reach this
  // machine by. For agents that do not host; a host has done so before connect is called.
  Status bind_worker_store(const std::string& address);

  // Makes ready what MASTER_PORT will name when this node has group rank 0: the empty workers'
  // store at the port that is held, or a port that the worker of rank 0 can bind.
  [[nodiscard]] Result<std::uint16_t> prepare_master();

  [[nodiscard]] bool hosting() const { return hosting_; }
  // "; port 29400 is held by process 1234 (nginx)" where this machine was to carry the store and
  // something else has the port; else empty. Asks the system once.
  [[nodiscard]] const std::string& holder();
  // This node, as the others are to see it; for the time after connect was called.
  [[nodiscard]] NodeIdentity identity(const std::string& host_name) const;

 private:
  void go_alone();
  void resolve();
  void on_answer(const Result<bool>& own);
  [[nodiscard]] std::string cannot_resolve(const std::string& why) const;
  void later(const std::string& what, void (StoreFinder::*step)());
  void host_or_connect(bool own);
  void connect_to_endpoint();
  [[nodiscard]] Endpoint listen_endpoint() const;
  [[nodiscard]] Result<Endpoint> carry();
  void host();
  void serve(const Endpoint& own);

  asio::io_context& io_;
  const Options& options_;
  HostedStore& store_;
  const Clock::time_point deadline_;
  const Calls calls_;
  BackendDiscovery discovery_;
  asio::steady_timer timer_;
  Clock::duration retry_;
  std::string advertised_host_;
  std::uint16_t worker_port_ = 0;
  bool hosting_ = false;
  bool taken_ = false;  // the port was: by another agent, or by something else
  std::optional<std::string> holder_;
  std::string unresolved_;  // why, as the last answer had it
  bool cancelled_ = false;
};

}  // namespace drun::launcher
