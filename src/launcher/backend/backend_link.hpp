// How this agent reaches the rendezvous backend, with all that it takes: the look-up, the store
// that it hosts, the link and its timer. BackendFsm decides; this does it, with StoreFounding where
// there are several endpoints, and StoreSearch when a store is lost that others may succeed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/base/result.hpp"
#include "launcher/backend/address_book.hpp"
#include "launcher/backend/backend_discovery.hpp"
#include "launcher/backend/backend_fsm.hpp"
#include "launcher/backend/endpoint_lookouts.hpp"
#include "launcher/backend/farewells.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/backend/remote_backend.hpp"
#include "launcher/backend/store_founding.hpp"
#include "launcher/backend/store_search.hpp"
#include "launcher/backend/store_standing.hpp"
#include "launcher/backend/successor_store.hpp"
#include "launcher/backend/worker_store_host.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/key_value.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::launcher {

class BackendLink {
 public:
  using Clock = std::chrono::steady_clock;

  // Called from `io`'s thread, some from inside start().
  struct Calls {
    // One line for the user: what is waited for before joined().
    std::function<void(std::string)> waiting;
    // The link is up: register as `identity`. Again only after dropped().
    std::function<void(const NodeIdentity& identity)> joined;
    // Whether the store may be given up for another: it has never confirmed that it knows this
    // agent, and the job is not over.
    // `known`: although it has, since no round has begun.
    std::function<bool(bool known)> dispensable;
    // It was given up, or nothing comes of it: this agent is registered nowhere. One of joined()
    // and gave_up() follows.
    std::function<void()> dropped;
    // This agent does not become a part of the job. leave() is due.
    std::function<void(rendezvous::Outcome)> gave_up;
    // What is to be said if this process cannot: none, if there is no session any more.
    std::function<void(Farewells farewells)> session;
    // What the backend says, from joined() on.
    std::function<void(const rendezvous::KeyValueEvent&)> event;
  };

  // A link to drun's store that is not open yet; `called`: see StoreBackend.
  using MakeLink = std::function<std::unique_ptr<RemoteBackend>(
      asio::io_context& io, store::ControlOptions options, RemoteBackend::Sink sink,
      std::function<void()> called)>;

  // The references must outlive this. The store is looked for until options.conf.join_timeout from
  // now. Without `make_link` it makes a StoreBackend.
  BackendLink(asio::io_context& io, const Options& options, std::string host_name, Calls calls,
              BackendDiscovery::StartLookUp start_look_up = store::start_look_up,
              MakeLink make_link = {});
  BackendLink(const BackendLink&) = delete;
  BackendLink& operator=(const BackendLink&) = delete;

  // Once; joined() or gave_up() follows.
  void start();
  // Looks for nothing any more. A link that is up stays so, and keeps `io` running. `job_goes_on`:
  // without this node; if the store that it hosts has successors, they are told when it is gone.
  void leave(bool job_goes_on);
  // Drops the link without a goodbye, and the store that this agent hosts: from the loop, so that
  // it may be called from inside an event. The last call; this must live until the loop has ended.
  void release();

  // ---- while joined ----

  [[nodiscard]] rendezvous::KeyValue& key_value() { return *key_value_; }
  // What the round says about the time after this store: see rendezvous::KeyValue.
  void vote(const rendezvous::Vote& vote, const std::vector<rendezvous::Successor>& successors);
  // Makes ready what MASTER_PORT will name when this node has group rank 0.
  [[nodiscard]] Result<std::uint16_t> prepare_worker_store() { return worker_store_.prepare(io_); }
  // For a round with its store there: see WorkerStoreHost.
  [[nodiscard]] Result<std::optional<Endpoint>> relay_to(const Endpoint& store) {
    return worker_store_.relay_to(store);
  }
  // The workers' store is served for the first client that comes; none has.
  [[nodiscard]] bool awaits_client() const { return store_.awaits_client(); }
  // Until the join timeout.
  [[nodiscard]] std::chrono::milliseconds time_left() const { return fsm_.time_left(Clock::now()); }
  // There is somebody to say goodbye to: the link is up, or broken and may mend.
  [[nodiscard]] bool is_up() const;
  // Where the store is, or was last, if it is not where this agent was told to look for it.
  [[nodiscard]] std::optional<Endpoint> moved_to() const;
  // Other jobs may use the store that this agent hosts.
  [[nodiscard]] bool hosts_for_others() const;
  // In one step: stops serving unless a key of the store is needed; whether it did.
  [[nodiscard]] bool stop_hosting_unless(const std::function<bool(std::string_view key)>& needed);

  // How it ends if this agent cannot go on before it has joined.
  [[nodiscard]] rendezvous::Outcome failure(std::string text) const;

 private:
  void advance(BackendStep step);
  void arm_timer();
  void on_time();
  void perform(std::monostate) {}
  void perform(LookUp);
  void perform(Found);
  void perform(const BindRendezvous& step);
  void perform(GoAlone);
  void perform(const Connect& step);
  void perform(const Follow& step);
  void perform(Wait& step);
  void perform(StartOver& step);
  void perform(Join);
  void perform(GiveUp& step);

  BackendStep become_host();
  [[nodiscard]] StoreFounding::Calls founding_calls();
  [[nodiscard]] StoreSearch::Calls search_calls();
  [[nodiscard]] std::unique_ptr<RemoteBackend> make_store_link(store::ControlOptions options);
  void set_link(std::unique_ptr<RemoteBackend> link);
  void drop_link();
  void note_loopback() const;
  void check_local_address();

  void on_event(rendezvous::KeyValueEvent event);
  void on_link_event(rendezvous::LinkEvent event);
  void complete(rendezvous::LinkEvent& event);
  [[nodiscard]] BackendStep on_link(const rendezvous::LinkEvent& event);
  void on_answer(const Endpoint& endpoint, const store::Whereabouts& answer);
  void on_search_failed(std::string why);
  void keep_lookout();
  void end_founding();
  void note_address();
  void look_up_addresses();
  [[nodiscard]] Farewells own_farewells() const;
  void note_session(rendezvous::Link link);
  [[nodiscard]] std::string port_holder_text();

  asio::io_context& io_;
  const Options& options_;
  const Calls calls_;
  const MakeLink make_link_;
  BackendFsm fsm_;
  BackendDiscovery discovery_;
  BackendDiscovery own_address_;  // whether --local-addr is one
  AddressBook address_book_;      // of the endpoints and the successors
  HostedStore store_;
  StoreStanding standing_;
  WorkerStoreHost worker_store_;
  SuccessorStore successor_store_;
  StoreFounding founding_;
  StoreSearch search_;
  EndpointLookouts lookouts_;
  bool job_goes_on_ = false;  // after leave()
  std::unique_ptr<rendezvous::KeyValue> key_value_;
  RemoteBackend* link_ = nullptr;  // the same, if it is not in this process
  DeadlineTimer timer_;
  NodeIdentity identity_;
  std::optional<std::string> port_holder_;  // as the system told it
};

}  // namespace drun::launcher
