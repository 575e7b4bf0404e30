// One agent as a member: registers, follows the round and its own assignment, starts and stops the
// workers accordingly, reports, and leaves when the job is over. Pure. Reacts to the state that the
// store shows, not to single events, so a repeated, late or skipped message changes nothing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"
#include "rendezvous/keys.hpp"
#include "rendezvous/outbox.hpp"
#include "rendezvous/rejections.hpp"

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
  void on_workers_failed(int round, FailureSummary failure);
  void on_workers_stopped();
  void on_workers_stalled(int round, bool stalled);
  void on_lease_over() { lease_over_ = true; }
  void on_stop_requested(std::string reason, int exit_code, Time now);
  void on_leave_requested(std::string reason, int exit_code, Time now);

  // Of its machine.
  void on_facts(std::string sheet);

  // This agent must leave, for this reason. The job goes on without it.
  // `unfit`: because of what its machine is like.
  void refuse(std::string reason, bool unfit = false);
  // The store is there, but does not do what this agent needs, for this reason.
  void give_up(std::string reason);
  // Another agent leads from now on. Its time limit may have begun later than ours.
  void on_new_leader(Time now) { word_of_leader_ = now; }
  // The store is in this process.
  [[nodiscard]] bool is_host() const { return document_.is_host; }
  // It leads, and decides about a further round not before this time. Nullopt: it does not lead.
  void lead_until(std::optional<Time> time) { leads_until_ = time; }
  // This is a later store, and others of the round may still be on their way to it.
  void expect_others_until(std::optional<Time> time) { others_come_until_ = time; }

  // Acts on all that has changed. Call after any of the above, and when next_deadline() is due.
  void advance(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  [[nodiscard]] bool ending() const { return ending_.has_value(); }  // leaves, or will
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool up() const { return touch_ == Touch::Up; }
  // It cannot do without this watch.
  [[nodiscard]] bool needs(WatchId watch) const {
    return round_.is(watch) || assignment_.is(watch) || watch == outcome_watch_;
  }
  // The store does not take what it writes.
  [[nodiscard]] bool rejected() const { return rejections_.any(); }
  // It was told to go: takes part in no further round.
  [[nodiscard]] bool leaving() const { return leave_.has_value(); }
  // Nothing but the store's answer keeps it any more.
  [[nodiscard]] bool has_left(Time now) const;
  // The store has never confirmed that it knows this agent (or, with `known`, no matter), and
  // nothing has happened to it.
  [[nodiscard]] bool dispensable(bool known) const {
    return (known || !registered_) && !stop_ && !leave_ && !refusal_ && !ending_ && !finished_;
  }
  // As last seen; nullopt: the store has none.
  [[nodiscard]] const std::optional<RoundDocument>& round() const { return round_.document; }
  // The latest ever seen; the store may have forgotten it since.
  [[nodiscard]] const RoundDocument& seen() const { return seen_; }
  // Until then nodes may have workers of another round that the store showed and has lost, and of
  // which seen() says nothing. Nullopt, or past: there was none.
  [[nodiscard]] std::optional<Time> others_until() const { return others_until_; }
  // Of the last settled round that the store has told of; 0: of none.
  [[nodiscard]] std::int64_t settled_era() const { return settled_era_; }
  // What became of the last rounds, as far as it was told: of a node that may succeed the store.
  [[nodiscard]] const History& history() const { return history_; }
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
  [[nodiscard]] const std::string& trouble() const { return detail_; }  // why the link broke last

 private:
  enum class Touch {
    Never,  // there was no connection yet
    Up,
    Lost
  };
  enum class Workers {
    None,
    Running,
    Succeeded,
    Failed,    // and the rest of them still run
    Stopping,  // were asked to stop
    Killing
  };

  struct Refusal {
    std::string reason;
    bool unfit = false;  // because of what its machine is like
  };

  // A watched document: what was last seen of it.
  template <typename T>
  struct Watched {
    WatchId watch = 0;
    WatchId stale = 0;     // the watch before, until `current`: it may stop workers, not start any
    bool current = false;  // a snapshot has come since the link is up
    std::optional<T> document;

    [[nodiscard]] bool is(WatchId id) const { return id == watch || (stale != 0 && id == stale); }
  };

  template <typename T>
  void replace_watch(Watched<T>& watched, const std::string& key);
  template <typename T>
  void make_current(Watched<T>& watched);
  void rewatch();
  void note_left(int round);
  void note_others(const RoundDocument* next);
  void take_round(const std::optional<std::string>& value);
  void take_assignment(const std::optional<std::string>& value);
  void take_outcome(const std::optional<std::string>& value, bool first);
  void find_ending(Time now);
  void find_stop(Time now);
  void find_leave(Time now);
  [[nodiscard]] bool is_foreign_job() const;
  [[nodiscard]] std::optional<Outcome> trouble_outcome(Time now) const;
  void renew_lease();
  void speak();
  void keep_history();
  void take_history(const std::optional<std::string>& value);
  [[nodiscard]] bool looks_for_successor() const { return !successors_.empty(); }
  // A node that was out of touch for too long joins again, if it finds the job.
  [[nodiscard]] bool may_come_back() const { return config_.successors > 0; }
  // The store is in this process, and no other would succeed it.
  [[nodiscard]] bool carries_job() const { return document_.is_host && !looks_for_successor(); }
  [[nodiscard]] Milliseconds patience_without_store() const;
  void follow(Time now);
  [[nodiscard]] Time patience_ends() const;  // if no leader decides anything until then
  void keep_or_stop(Time now);
  void tell_of_hang();
  [[nodiscard]] bool time_limit_over() const;
  [[nodiscard]] bool worker_failed() const;
  [[nodiscard]] bool was_up() const { return touch_ != Touch::Never; }
  [[nodiscard]] bool stop_asked() const {
    return workers_ == Workers::Stopping || workers_ == Workers::Killing;
  }
  [[nodiscard]] bool found_hung() const;
  [[nodiscard]] bool may_start(Time now) const;
  void stop_workers(const std::string& reason, bool immediately);
  [[nodiscard]] int stop_signal() const;
  void leave(Time now);
  void publish(Time now);
  void publish_facts();
  [[nodiscard]] MemberDocument document() const;
  [[nodiscard]] bool stop_ends_job() const;
  [[nodiscard]] bool is_said() const { return up() && registered_ && !dirty_ && request_ == 0; }
  [[nodiscard]] Time leave_ends() const;
  [[nodiscard]] std::optional<Time> refused_until() const;
  [[nodiscard]] Milliseconds stop_wait() const;

  const Config& config_;
  const Keys& keys_;
  Outbox& outbox_;

  // The connection.
  Touch touch_ = Touch::Never;
  std::optional<std::string> failed_;
  std::string detail_;
  Time up_since_;
  Time out_of_touch_since_;  // while not up
  Time last_touch_;
  std::optional<Time> paused_at_;  // this process was suspended, from this moment ...
  Time resumed_at_;                // ... to this one
  std::optional<Time> alive_;      // the session was, when last heard of it
  std::optional<Time> renewed_;    // the lease of the workers; nullopt: the session does not age
  std::int64_t settled_era_ = 0;
  // Every round since the last settled one included this node, so any leader that knows that round
  // waits for it. Used if the store has successors.
  bool firm_ = false;
  std::optional<Vote> vote_;  // as last said; nullopt: it has none, the store has no successors
  std::vector<Successor> successors_;
  WatchId history_watch_ = 0;  // while this node may have to succeed the store
  History history_;
  bool unknown_ = false;     // the link came back; the store may show nothing of this agent
  bool lease_over_ = false;  // the workers were killed because it was not renewed
  Watched<RoundDocument> round_;
  RoundDocument seen_;
  std::optional<Time> others_until_;
  Watched<AssignmentDocument> assignment_;
  WatchId outcome_watch_ = 0;
  bool joined_open_ = false;  // the job had not ended when this agent came
  std::optional<Outcome> outcome_;

  // What this agent writes about itself.
  MemberDocument document_;  // a new claim alone is not worth a write: it goes along with the next
  bool dirty_ = true;        // the leader must know something that is not in the store yet
  RequestId request_ = 0;    // outstanding; 0: none
  bool registered_ = false;
  int refused_writes_ = 0;
  Rejections rejections_;
  std::optional<std::string> given_up_;
  std::string facts_;           // of its machine; empty: not known yet
  bool facts_written_ = false;  // or there is nothing to write
  std::optional<Time> retry_at_;

  // The workers.
  Workers workers_ = Workers::None;
  int held_ = 0;          // the round whose workers there are; 0: none
  int last_place_ = 0;    // the last round that this agent was to take part in
  int place_before_ = 0;  // the one before it
  int ran_ = 0;           // the last round that is known to have run
  int ran_before_ = 0;    // the one before it
  bool hung_ = false;     // with all others; it was told
  int preparing_ = 0;

  // The end.
  std::optional<StopRequest> stop_;
  Time stop_since_;
  std::optional<StopRequest> leave_;
  Time leave_since_;
  std::optional<Time> unheld_since_;  // while it leaves: no workers are left
  std::optional<Time> leads_until_;
  std::optional<Time> others_come_until_;
  std::optional<Refusal> refusal_;
  std::optional<Outcome> ending_;
  std::optional<Time> closing_since_;
  WatchId closing_watch_ = 0;
  std::optional<std::set<std::string>> others_;  // keys of the other members, while closing
  bool finished_ = false;

  std::optional<Time> waiting_since_;
  Time word_of_leader_;  // when it became known, or wrote to the round
};

}  // namespace drun::rendezvous
