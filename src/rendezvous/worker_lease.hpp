// The lease by which a node's workers run: the others wait for them only as long as the store shows
// them that this agent is there. Pure.
#pragma once

#include <optional>

#include "rendezvous/types.hpp"

namespace drun::rendezvous {

class WorkerLease {
 public:
  explicit WorkerLease(Milliseconds keep_alive) : keep_alive_(keep_alive) {}

  void on_new_session() { alive_.reset(); }
  // The link came back: the store may show nothing of this agent, until its entry is written again.
  void doubt() { is_in_doubt_ = true; }
  void on_entry_written() { is_in_doubt_ = false; }
  // The session was alive then.
  void on_alive(Time sent);
  // The workers are killed because the lease was not renewed.
  void on_over() { is_over_ = true; }
  void on_new_workers() { is_over_ = false; }
  void on_workers_gone() { is_over_ = false; }

  // From when the workers may run for another lease; nullopt: nothing new.
  [[nodiscard]] std::optional<Time> renew(bool holds_workers);
  // While the session surely lives, and shows this node, the others wait for it before they begin
  // another round.
  [[nodiscard]] bool may_start(Time now) const;
  // The store may show nothing of this agent.
  [[nodiscard]] bool in_doubt() const { return is_in_doubt_; }
  [[nodiscard]] bool over() const { return is_over_; }

 private:
  const Milliseconds keep_alive_;
  std::optional<Time> alive_;    // the session was, when last heard of it
  std::optional<Time> renewed_;  // nullopt: the session does not age
  bool is_in_doubt_ = false;
  bool is_over_ = false;
};

}  // namespace drun::rendezvous
