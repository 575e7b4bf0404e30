// The shell around the membership decision while this agent leads: watches all of the job's keys,
// feeds the decision, writes what comes out. Every write is guarded by the leader key's exact
// value, so a leader that was replaced without noticing cannot write anything.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/membership.hpp"
#include "rendezvous/other_jobs.hpp"
#include "rendezvous/outbox.hpp"

namespace drun::rendezvous {

// Transactions are cut at this many writes. The round's document comes with the last part, so a
// round still begins at one moment.
inline constexpr std::size_t kMaxWrites = 100'000;

class Leader {
 public:
  // `value` is what the leader key holds. `previous`: what this agent knew when it led before, or
  // null. `seen`: the latest round that it has seen. `grace_until`: until when nodes that are not
  // there are waited for. `waiting_since`: since when this agent waits for a round, if it does. The
  // references must outlive this.
  Leader(const Config& config, Outbox& outbox, std::string value, std::int64_t epoch,
         std::unique_ptr<State> previous, const RoundDocument& seen,
         std::optional<Time> grace_until, std::optional<Time> waiting_since);

  void on_snapshot(const WatchSnapshot& snapshot, Time now);
  void on_changes(const WatchChanges& changes, Time now);
  void on_commit(const CommitResult& result, Time now);
  // The state may be out of date until the next snapshot, which comes by itself.
  void on_link_lost();

  void advance(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // A write was refused: somebody else leads, or nobody.
  [[nodiscard]] bool deposed() const { return deposed_; }
  // The job's agreement is not this agent's: it must not lead. Empty when it may.
  [[nodiscard]] const std::string& disagreement() const { return disagreement_; }
  // No round begins before, because nodes have been told to go.
  [[nodiscard]] Time next_round_from() const {
    return state_ != nullptr ? state_->leave_until.value_or(Time{}) : Time{};
  }
  // What this leader knows; null before the first snapshot.
  [[nodiscard]] const State* state() const { return state_.get(); }
  // Ends the leadership's watches and gives back what is known, perhaps null.
  [[nodiscard]] std::unique_ptr<State> retire();

 private:
  void apply(const Change& change, Time now);
  void write(Decision decision);
  void read_again();
  // While nodes are missing, the leader looks twice for other jobs on this store: the missing nodes
  // may have been started with another id.
  [[nodiscard]] std::optional<Time> next_look() const;
  void look_for_other_jobs(Time now);

  const Config& config_;
  Outbox& outbox_;
  const std::string value_;
  const std::int64_t epoch_;
  const RoundDocument& seen_;
  std::optional<Time> grace_until_;
  const std::optional<Time> waiting_since_;

  WatchId watch_ = 0;
  WatchId look_ = 0;  // at all jobs of the store; 0: not looking
  std::optional<Time> looked_at_;
  bool current_ = false;  // a snapshot has come, and no change was missed since
  bool deposed_ = false;
  std::string disagreement_;
  std::unique_ptr<State> state_;
  std::optional<Decision> pending_;  // sent to the store, not answered yet
  std::vector<RequestId> requests_;  // of the pending decision
};

}  // namespace drun::rendezvous
