// What an agent knows of the job's store, and what it is to it: host, successor, or neither. From
// that follows what it asks at the endpoints of the job and what it tells there, so that
// agents that come find the store. Pure: BackendLink does it, and so does the simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "launcher/backend/backend_fsm.hpp"
#include "launcher/backend/succession_fsm.hpp"
#include "launcher/options/options.hpp"
#include "rendezvous/key_value.hpp"
#include "store/client/inquiry_fsm.hpp"

namespace drun::launcher {

// What is to be said and asked at the endpoints.
enum class LookoutTask {
  None,
  Ask,         // where the store is: this agent has lost it
  AskOften,    // the same, before there is one: founders meet in hundreds of milliseconds
  TellOfLoss,  // the store is being looked for
  TellPlace,   // where it is
};
[[nodiscard]] constexpr bool tells(LookoutTask task) {
  return task == LookoutTask::TellOfLoss || task == LookoutTask::TellPlace;
}

class StoreStanding {
 public:
  // `options` must outlive this.
  explicit StoreStanding(const Options& options) : options_(options) {}

  // ---- what happens ----

  // The search begins anew. `serves_on`: its own store at the single endpoint stays.
  void start_over(bool serves_on);
  // This agent's own store serves at the single endpoint.
  void on_founded() { has_founded_ = true; }
  // It goes to another store, of which it was told at the endpoint; or to the one there, which may
  // be the first again.
  void on_followed() { has_moved_ = true; }
  void on_moved(const Endpoint& endpoint) { has_moved_ = endpoint != options_.endpoint; }
  // No store is listened to any more.
  void on_lost() { is_lost_ = true; }
  // Of a link that is up, where stores succeed one another: fills in what only this agent knows.
  // `at_own_port`: the link leads to the port that it holds for a successor.
  void on_link_up(BackendState state, bool at_own_port, rendezvous::LinkEvent& event);
  // What the round says about the time after this store.
  [[nodiscard]] SuccessionPlan on_vote(const rendezvous::Vote& vote,
                                       const std::vector<rendezvous::Successor>& successors);

  // ---- what follows ----

  // With each link, and whenever the succession goes on. `founding`: it has begun to look for the
  // founders of several endpoints; `succession`: null if the store has no successors.
  [[nodiscard]] LookoutTask lookout(BackendState state, bool founding,
                                    const SuccessionFsm* succession) const;
  // How the endpoints are asked; and how those that must be met within milliseconds, when a machine
  // comes back, are asked beside that.
  [[nodiscard]] store::InquiryFsm::Options inquiry(LookoutTask task) const;
  [[nodiscard]] store::InquiryFsm::Options quick_inquiry() const;
  // What is told there. `own`: where this agent serves, if it does; `store`: where the store is
  // else.
  [[nodiscard]] store::StoreNews news(LookoutTask task, const Endpoint& own,
                                      const Endpoint& store) const;
  // Where a later store is, if the answer of the one at `endpoint` says so.
  [[nodiscard]] std::optional<Endpoint> later_store(const store::Whereabouts& answer,
                                                    const Endpoint& endpoint) const;
  // An agent that has met others at one of several endpoints may still go to another one with
  // them: no round has run.
  [[nodiscard]] bool may_still_move() const { return !options_.endpoints.empty() && !has_round_; }

  // Of the last store that knew this agent.
  [[nodiscard]] std::int64_t generation() const { return generation_; }
  // The present store is in this process.
  [[nodiscard]] bool hosts() const { return hosting_; }
  // A store of its own serves at the endpoint, if only to say where the present one is.
  [[nodiscard]] bool has_founded() const { return has_founded_; }
  // The present store is not the one that it first came to.
  [[nodiscard]] bool has_moved() const { return has_moved_; }
  [[nodiscard]] bool is_lost() const { return is_lost_; }
  // Where the successors other than this agent are.
  [[nodiscard]] const std::vector<Endpoint>& other_successors() const { return others_; }
  // Of the stores of this job, for TLS; empty: they have none.
  [[nodiscard]] std::string key() const;

 private:
  const Options& options_;
  std::int64_t generation_ = 0;
  bool has_round_ = false;    // there was one, as far as it knows
  bool is_jobs_own_ = false;  // a node of the job has the first store, or had it
  bool hosting_ = false;
  bool has_founded_ = false;
  bool has_moved_ = false;
  bool is_successor_ = false;
  bool is_lost_ = false;
  std::vector<Endpoint> others_;
};

}  // namespace drun::launcher
