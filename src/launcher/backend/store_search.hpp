// What an agent does when its store is lost and others may succeed it: SuccessionFsm decides where
// to look for the next one, or whether to serve it; this does it, with the port that it holds for
// that. Without successors it does nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/backend/remote_backend.hpp"
#include "launcher/backend/store_standing.hpp"
#include "launcher/backend/succession_fsm.hpp"
#include "launcher/backend/successor_store.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/key_value.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::launcher {

class StoreSearch {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  // From inside the inputs.
  struct Calls {
    // The link is on its way to another store. The one that it leaves must not hear of this agent's
    // death any more.
    std::function<void()> moved;
    // There is no store any more; one line for the user.
    std::function<void(std::string text)> lost;
    // A step was taken: next_deadline(), and what the endpoints are to be told, may be another.
    std::function<void()> changed;
  };

  // The references must outlive this. `own_store`: holds the port at which this agent may serve.
  StoreSearch(const Options& options, StoreStanding& standing, SuccessorStore& own_store,
              Calls calls);
  StoreSearch(const StoreSearch&) = delete;
  StoreSearch& operator=(const StoreSearch&) = delete;

  // The agent's link; null: there is none. It must live until the next call of this.
  void set_link(RemoteBackend* link) { link_ = link; }

  // The agent knows no store but this one. From now on it may have successors.
  void begin_at(const Endpoint& store);
  // The agent has come to its first store. `listed`: the endpoint at which its own store stands, if
  // there are several and one is its own. Takes a port otherwise, and notes it.
  void join(std::optional<std::size_t> listed, NodeIdentity& identity);
  // What the round says about the time after this store.
  void vote(const rendezvous::Vote& vote, const std::vector<rendezvous::Successor>& successors);
  // The job is over for this agent.
  void leave();

  // Of an agent that has `joined`, or not yet. What follows is done by follow(), when the rest has
  // been told of the event.
  [[nodiscard]] SuccessionStep on_link(const rendezvous::LinkEvent& event, bool joined);
  void follow(const SuccessionStep& step);
  // What a server at this endpoint says.
  void on_answer(const Endpoint& endpoint, const store::Whereabouts& answer);
  // At or after next_deadline(). `cause`: why the link has not mended, as far as it knows.
  void on_time(const std::string& cause);

  // Agents that come to the endpoint at which the own store stands are told where the job's is.
  void point_to_store();

  // Null: the store has no successors.
  [[nodiscard]] const SuccessionFsm* fsm() const { return fsm_ ? &*fsm_ : nullptr; }
  // The link is broken, and the rendezvous has heard of it.
  [[nodiscard]] bool is_broken() const { return fsm_ && fsm_->is_broken(); }
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  void perform(std::monostate) {}
  void perform(const Visit& step);
  void perform(Stand);
  void perform(const GiveUpSearch& step);
  void move_to(const Endpoint& endpoint);

  const Options& options_;
  StoreStanding& standing_;
  SuccessorStore& own_store_;
  const Calls calls_;
  RemoteBackend* link_ = nullptr;
  std::optional<SuccessionFsm> fsm_;
  bool listed_ = false;
  store::StoreNews pointed_to_;  // what agents that come to the own store are told
};

}  // namespace drun::launcher
