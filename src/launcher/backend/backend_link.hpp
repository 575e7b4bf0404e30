// How this agent reaches the rendezvous backend, with all that it takes: the look-up, the store
// that it hosts, the link and its timer. BackendFsm decides; this does it.
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
#include "launcher/backend/founding_fsm.hpp"
#include "launcher/backend/hosted_store.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/backend/own_endpoint_fsm.hpp"
#include "launcher/backend/remote_backend.hpp"
#include "launcher/backend/store_standing.hpp"
#include "launcher/backend/succession_fsm.hpp"
#include "launcher/backend/successor_store.hpp"
#include "launcher/backend/worker_store_host.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/key_value.hpp"
#include "store/client/lookout.hpp"

namespace drun::launcher {

// The first ends the session at the store. If it does not get there, because the store is gone as
// well, the others tell the store's successors.
struct Farewells {
  std::optional<store::ControlFarewell> first;
  std::vector<store::ControlFarewell> others;
};

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

  // The references must outlive this. The store is looked for until options.conf.join_timeout from
  // now.
  BackendLink(asio::io_context& io, const Options& options, std::string host_name, Calls calls,
              BackendDiscovery::StartLookUp start_look_up = store::start_look_up);
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
  [[nodiscard]] std::unique_ptr<RemoteBackend> make_store_backend(store::ControlOptions options);
  // Of several endpoints:
  void perform(const OwnEndpointFsm::Step& step);
  void look_up(std::size_t endpoint);
  void begin_founding();
  void end_founding();
  void go(const FoundingFsm::Step& step);
  void point_to_store();
  void note_loopback() const;
  void check_local_address();
  void perform(const Visit& step);
  void perform(Stand);
  void perform(const GiveUpSearch& step);

  void on_event(rendezvous::KeyValueEvent event);
  void on_link_event(rendezvous::LinkEvent event);
  void complete(rendezvous::LinkEvent& event);
  void follow(const SuccessionStep& step);
  void on_answer(const Endpoint& endpoint, const store::Whereabouts& answer);
  void keep_lookout();
  void look_out(std::unique_ptr<store::Lookout>& lookout, const std::vector<Endpoint>& endpoints,
                const store::InquiryFsm::Options& options);
  [[nodiscard]] store::StoreNews news() const;
  [[nodiscard]] std::vector<Endpoint> known_endpoints() const;
  [[nodiscard]] std::vector<Endpoint> known_addresses() const;
  void note_address();
  void look_up_addresses();
  [[nodiscard]] SuccessionStep look_elsewhere(const rendezvous::LinkEvent& event);
  void hold_successor_port();
  void note_session(rendezvous::Link link);
  [[nodiscard]] Farewells farewells() const;
  [[nodiscard]] std::vector<store::ControlFarewell> proofs_for_others() const;
  void move_to(const Endpoint& endpoint);
  [[nodiscard]] BackendStep on_link(const rendezvous::LinkEvent& event);
  [[nodiscard]] std::string port_holder_text();

  asio::io_context& io_;
  const Options& options_;
  const Calls calls_;
  BackendFsm fsm_;
  BackendDiscovery discovery_;
  const BackendDiscovery::StartLookUp start_look_up_;
  BackendDiscovery own_address_;         // whether --local-addr is one
  AddressBook address_book_;             // of the endpoints and the successors
  std::optional<FoundingFsm> founding_;  // while it is at no store of several endpoints
  std::vector<std::unique_ptr<BackendDiscovery>> look_ups_;  // of each endpoint
  std::optional<OwnEndpointFsm> own_endpoints_;              // while the store is looked for
  std::optional<std::size_t> listed_;  // the endpoint at which this agent waits or has waited
  HostedStore store_;
  StoreStanding standing_;
  WorkerStoreHost worker_store_;
  std::optional<SuccessionFsm> succession_;  // nullopt: the store has no successors
  SuccessorStore successor_store_;
  std::unique_ptr<store::Lookout> lookout_;
  LookoutTask lookout_task_ = LookoutTask::None;
  // A second, faster probe, for hosts that come back and listen only for 75-300 ms.
  std::unique_ptr<store::Lookout> quick_;
  std::optional<Endpoint> address_;  // the single endpoint's, when it was last reached
  store::StoreNews pointed_to_;      // what the signpost at the listed endpoint says
  bool job_goes_on_ = false;         // after leave()
  std::unique_ptr<rendezvous::KeyValue> key_value_;
  RemoteBackend* link_ = nullptr;  // the same, if it is not in this process
  DeadlineTimer timer_;
  NodeIdentity identity_;
  std::optional<std::string> port_holder_;  // as the system told it
};

}  // namespace drun::launcher
