// One agent as a member: registers, follows the round and its own assignment, starts and stops the
// workers accordingly, reports, and leaves when the job is over. Pure. Reacts to the state that the
// store shows, not to single events, so a repeated, late or skipped message changes nothing. Each
// part of it says which states it has; this wires them.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "rendezvous/departure.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/held_workers.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/last_to_leave.hpp"
#include "rendezvous/member_vote.hpp"
#include "rendezvous/outbox.hpp"
#include "rendezvous/own_entry.hpp"
#include "rendezvous/seen_rounds.hpp"
#include "rendezvous/store_link.hpp"
#include "rendezvous/watched_document.hpp"
#include "rendezvous/worker_lease.hpp"

namespace drun::rendezvous {

class MemberAgent {
 public:
  // The references must outlive this.
  MemberAgent(const Config& config, const Keys& keys, Outbox& outbox, Time now);

  // Call before any other input, with the time at which it came: notices that this process was
  // suspended.
  void note_time(Time now);

  // ---- the connection ----
  void on_link_up(const LinkEvent& event, Time now);
  // `silent`: how long the store had not been heard from.
  void on_link_down(std::string detail, Milliseconds silent, Time now);
  void on_link_failed(std::string detail, Time now);
  void on_snapshot(const WatchSnapshot& snapshot);
  void on_changes(const WatchChanges& changes, Time now);
  void on_commit(const CommitResult& result, Time now);
  void on_renewed(const Renewed& event);

  // ---- the workers ----
  void on_worker_store_ready(int round, std::uint16_t port);
  void on_workers_succeeded(int round);
  void on_workers_failing(int round);
  void on_workers_failed(int round, FailureSummary failure);
  void on_workers_stopped(std::string end = {});
  void on_workers_stalled(int round, bool stalled);
  void on_lease_over() { lease_.on_over(); }
  void on_stop_requested(std::string reason, int exit_code, Time now);
  void on_leave_requested(std::string reason, int exit_code, Time now);

  // Of its machine.
  void on_facts(std::string sheet);

  // As Participant's.
  void leave_last() { gathers_ = true; }

  // This agent must leave, for this reason. The job goes on without it.
  // `unfit`: because of what its machine is like.
  void refuse(std::string reason, bool unfit = false) {
    departure_.refuse(std::move(reason), unfit);
  }
  // The store is there, but does not do what this agent needs, for this reason.
  void give_up(std::string reason) { departure_.give_up(std::move(reason)); }
  // Another agent leads from now on. Its time limit may have begun later than ours.
  void on_new_leader(Time now) { word_of_leader_ = now; }
  // The store is in this process.
  [[nodiscard]] bool is_host() const { return document_.is_host; }
  // It leads, and decides about a further round not before this time. Nullopt: it does not lead.
  void lead_until(std::optional<Time> time) { leads_until_ = time; }
  // The job is over, and its leader has heard of every node of the round.
  [[nodiscard]] bool all_heard() const { return departure_.all_heard(); }
  // This is a later store, and others of the round may still be on their way to it.
  void expect_others_until(std::optional<Time> time) { others_come_until_ = time; }

  // Acts on all that has changed. Call after any of the above, and when next_deadline() is due.
  void advance(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  [[nodiscard]] bool ending() const { return departure_.ending(); }  // leaves, or will
  [[nodiscard]] bool finished() const { return departure_.gone(); }
  [[nodiscard]] bool up() const { return link_.up(); }
  // It cannot do without this watch.
  [[nodiscard]] bool needs(WatchId watch) const {
    return round_.is(watch) || assignment_.is(watch) || watch == outcome_watch_;
  }
  // The store does not take what it writes.
  [[nodiscard]] bool rejected() const { return entry_.rejections().any(); }
  // It was told to go: takes part in no further round.
  [[nodiscard]] bool leaving() const { return departure_.leave_asked(); }
  // Nothing but the store's answer keeps it any more.
  [[nodiscard]] bool has_left(Time now) const { return departure_.has_left(surroundings(), now); }
  // The store has never confirmed that it knows this agent (or, with `known`, no matter), and
  // nothing has happened to it.
  [[nodiscard]] bool dispensable(bool known) const {
    return (known || !entry_.was_written()) && departure_.untouched();
  }
  // As last seen; nullopt: the store has none.
  [[nodiscard]] const std::optional<RoundDocument>& round() const { return round_.document; }
  // What the store has shown, and may have forgotten since.
  [[nodiscard]] const SeenRounds& seen() const { return seen_; }
  [[nodiscard]] const MemberVote& vote() const { return vote_; }
  // In the round that was last given out.
  [[nodiscard]] std::optional<int> group_rank() const {
    if (!assignment_.document || !assignment_.document->go) return std::nullopt;
    return assignment_.document->assignment.group_rank;
  }
  // True while no round runs; waiting_since() is valid then.
  [[nodiscard]] bool waiting() const { return waiting_since_.has_value(); }
  [[nodiscard]] Time waiting_since() const { return *waiting_since_; }
  // A round runs without this agent.
  [[nodiscard]] bool spare() const;
  [[nodiscard]] const std::string& trouble() const {
    return link_.trouble();
  }  // why the link broke last

 private:
  void rewatch();
  void note_left(int round);
  void take_round(const std::optional<std::string>& value);
  void take_assignment(const std::optional<std::string>& value);
  void take_outcome(const std::optional<std::string>& value, bool snapshot);
  [[nodiscard]] Departure::Surroundings surroundings() const;
  void find_ending(Time now);
  [[nodiscard]] std::optional<Outcome> trouble_outcome(Time now) const;
  void renew_lease();
  void speak();
  // A node that was out of touch for too long joins again, if it finds the job.
  [[nodiscard]] bool may_come_back() const { return config_.successors > 0; }
  // The store is in this process, and no other would succeed it.
  [[nodiscard]] bool carries_job() const { return document_.is_host && !vote_.knows_successors(); }
  [[nodiscard]] Milliseconds patience_without_store() const;
  void follow(Time now);
  [[nodiscard]] Time patience_ends() const;  // if no leader decides anything until then
  void keep_or_stop(Time now);
  void tell_of_hang();
  [[nodiscard]] bool time_limit_over() const;
  [[nodiscard]] bool worker_failed() const;
  [[nodiscard]] bool found_hung() const;
  [[nodiscard]] bool takes_nodes_in() const;
  [[nodiscard]] bool may_start(Time now) const;
  void stop_workers(const std::string& reason, bool immediately);
  [[nodiscard]] bool gathers() const;
  [[nodiscard]] bool tells_end(Time now);
  void leave(Time now);
  void publish(Time now);
  void publish_facts();
  [[nodiscard]] MemberDocument document() const;
  [[nodiscard]] bool stop_ends_job() const;

  const Config& config_;
  const Keys& keys_;
  Outbox& outbox_;

  StoreLink link_;
  WorkerLease lease_;
  MemberVote vote_;

  // What the store shows.
  WatchedDocument<RoundDocument> round_;
  WatchedDocument<AssignmentDocument> assignment_;
  SeenRounds seen_;
  WatchId outcome_watch_ = 0;
  bool joined_open_ = false;  // the job had not ended when this agent came

  // What this agent writes about itself.
  MemberDocument document_;  // a new claim alone is not worth a write: it goes along with the next
  OwnEntry entry_;
  std::string facts_;  // of its machine; empty: not known yet
  bool facts_due_ = false;

  // The workers.
  HeldWorkers workers_;
  int last_place_ = 0;    // the last round that this agent was to take part in
  int place_before_ = 0;  // the one before it
  int ran_ = 0;           // the last round that is known to have run
  int ran_before_ = 0;    // the one before it
  bool hung_ = false;     // with all others; it was told
  int preparing_ = 0;

  // The end.
  Departure departure_;
  LastToLeave last_to_leave_;
  bool gathers_ = false;           // though it is no host
  std::string end_;                // of the workers that were stopped last
  int end_round_ = 0;              // and their round
  std::optional<Time> end_until_;  // the others learn of it, or not
  std::optional<Time> leads_until_;
  std::optional<Time> others_come_until_;

  std::optional<Time> waiting_since_;
  Time word_of_leader_;  // when it became known, or wrote to the round
};

}  // namespace drun::rendezvous
