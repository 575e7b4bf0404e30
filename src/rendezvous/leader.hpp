// The shell around the membership decision while this agent leads: watches all of the job's keys,
// feeds the decision, writes what comes out. Every write is guarded by the leader key's exact
// value, so a leader that was replaced without noticing cannot write anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "rendezvous/decision_writer.hpp"
#include "rendezvous/job_watch.hpp"
#include "rendezvous/membership.hpp"
#include "rendezvous/other_jobs.hpp"
#include "rendezvous/outbox.hpp"
#include "rendezvous/reign.hpp"
#include "rendezvous/rejections.hpp"

namespace drun::rendezvous {

// Transactions are cut at this many writes, or at what the store takes. The round's document comes
// with the last part, so a round still begins at one moment.
inline constexpr std::size_t kMaxWrites = 100'000;

class Leader {
 public:
  // `value` is what the leader key holds. `previous`: what this agent knew when it led before, or
  // null. `seen`: the latest round that it has seen. `grace_until`: until when nodes that are not
  // there are waited for. `others_until`: see restore(). `waiting_since`: since when this agent
  // waits for a round, if it does. `succession`: which of several stores it is at. `before`: who
  // led until now, if this agent has seen that. The references must outlive this.
  Leader(const Config& config, Outbox& outbox, std::string value, std::int64_t epoch,
         std::unique_ptr<State> previous, const RoundDocument& seen,
         std::optional<Time> grace_until, std::optional<Time> others_until,
         std::optional<Time> waiting_since, const Succession& succession = {},
         LeaderDocument before = {});

  void on_snapshot(const WatchSnapshot& snapshot, Time now);
  void on_changes(const WatchChanges& changes, Time now);
  void on_watch_rejected(const WatchRejected& event, Time now);
  void on_commit(const CommitResult& result, Time now);
  // As the store says; 0: it does not.
  void limit_writes(std::size_t most) {
    most_writes_ = most == 0 ? kMaxWrites : std::min(most, kMaxWrites);
  }
  // The state may be out of date until the next snapshot, which comes by itself.
  void on_link_lost();
  // Its own agent cannot write now, nor, as far as it knows, can the others.
  void note_full_store(Time now);

  void advance(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  // A guard did not hold: somebody else leads, or nobody.
  [[nodiscard]] bool deposed() const { return reign_.deposed(); }
  // What the store did not take of this leader, which asks it again, less and less often, and in
  // the end to say no more than that the job is over.
  [[nodiscard]] const Rejections& rejections() const { return rejections_; }
  // The job's agreement is not this agent's: it must not lead. Empty when it may.
  [[nodiscard]] const std::string& disagreement() const { return disagreement_; }
  // No round begins before, because nodes have been told to go.
  [[nodiscard]] Time next_round_from() const {
    return state_ != nullptr ? state_->leave_until.value_or(Time{}) : Time{};
  }
  // At a later store: nodes of the last round of which nothing has been heard may come until then,
  // which is after `now`. Needs state().
  [[nodiscard]] std::optional<Time> others_come_until(Time now) const;
  // What this leader knows; null before the first snapshot.
  [[nodiscard]] const State* state() const { return state_.get(); }
  // Ends the leadership's watches and gives back what is known, perhaps null.
  [[nodiscard]] std::unique_ptr<State> retire();

 private:
  void apply(const Change& change, Time now);
  [[nodiscard]] int ran() const;
  [[nodiscard]] bool is_news(const MemberDocument& document) const;
  [[nodiscard]] bool may_decide() const;
  void tell_written(Decision decision, Time now);
  void tell_news(Decision& decision);
  void tell_joined(const std::string& ticket, const MemberDocument& document);
  [[nodiscard]] std::string why_gone(std::string_view ticket) const;
  void tell_gone(const std::string& ticket);
  void note_unseen(const State* previous);
  void tell_unseen(Time now);
  [[nodiscard]] std::string host_of(const std::string& ticket) const;
  void on_rejected(const std::string& why, Time now);
  void note_rejection(const std::string& what, const std::string& why, Time now);
  void end_job();
  void read_again();
  // While nodes are missing, the leader looks twice for other jobs on this store: the missing nodes
  // may have been started with another id.
  [[nodiscard]] std::optional<Time> next_look() const;
  void look_for_other_jobs(Time now);
  void note_facts(const Change& change);
  void compare_facts();

  const Config& config_;
  const Keys keys_;
  Outbox& outbox_;
  const std::string value_;
  const std::int64_t epoch_;
  const RoundDocument& seen_;
  std::optional<Time> grace_until_;
  const std::optional<Time> others_until_;
  const std::optional<Time> waiting_since_;
  const Succession succession_;
  const LeaderDocument before_;

  Reign reign_;
  JobWatch watch_;
  DecisionWriter writer_;
  WatchId look_ = 0;  // at all jobs of the store; 0: not looking
  std::optional<Time> looked_at_;
  int planned_ = 0;  // the last round that this leader has begun, or tried to; 0: none yet
  std::string disagreement_;
  std::unique_ptr<State> state_;
  bool began_ = false;  // a snapshot has come
  // By ticket, nodes that went while this leader did not see it: to be told of, unless they come
  // back within the grace.
  struct Unseen {
    std::string host;
    std::string why;  // as far as it is known
  };
  std::map<std::string, Unseen> unseen_;
  std::set<std::string> told_gone_;  // tickets
  bool new_facts_ = false;           // some nodes' were not compared yet
  std::size_t most_writes_ = kMaxWrites;
  Rejections rejections_;
};

}  // namespace drun::rendezvous
