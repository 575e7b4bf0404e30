// One agent's part in the rendezvous: registers, follows the round, stands for leader and leads
// when it has won. A pure state machine: messages and the time go in, actions come out. No socket,
// clock, thread or coroutine, so that the simulation drives the very code that runs in production.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/key_value.hpp"
#include "rendezvous/types.hpp"

namespace drun::rendezvous {

// ---- actions: what the agent around this machine must do ----

struct WatchAction {
  WatchId watch = 0;
  std::string key;
  bool prefix = false;
};
struct UnwatchAction {
  WatchId watch = 0;
};
struct CommitAction {
  RequestId request = 0;
  Transaction transaction;
};
// Call KeyValue::vote().
struct VoteAction {
  Vote vote;
  std::vector<Successor> successors;
};
// Only on the node of group rank 0: make the workers' store of this round ready (empty, no old
// connections), or find the port that rank 0's worker will bind; then call on_worker_store_ready().
struct PrepareWorkerStoreAction {
  Assignment assignment;
};
// Start the workers of this round; then report through on_workers_*().
struct StartAction {
  Assignment assignment;
};
// The workers may run for the length of the lease from this moment on.
struct RenewLeaseAction {
  Time sent;
};
// End this node's workers, if any run; call on_workers_stopped() when nothing is left of them.
struct StopAction {
  std::string reason;        // empty: they have succeeded; only clean up what they left
  bool immediately = false;  // no grace
  // The signal that asked an agent of the job to stop; the same on all nodes. 0: another cause.
  int signal = 0;
  bool time_limit = false;  // a limit that the user set is over, here or on another node
  bool failure = false;     // a worker has failed, likewise
  bool hang = false;        // ranks hang, here or on another node
  bool resize = false;      // nodes have joined, and the next round takes them in
};
// This agent's decision, as leader, to stop the round; a StopAction with the same reason follows if
// it runs workers itself.
struct RoundStopsAction {
  std::string reason;
};
// None of the job's workers makes progress, as on_workers_stalled() has said of this node's: what
// becomes of them is up to this agent. Once, unless they have made progress meanwhile.
struct HangAction {};
// Leave: close the KeyValue, give the outcome's exit code. Workers are already stopped.
struct FinishAction {
  Outcome outcome;
  // On the node that leaves last: what on_workers_stopped() was told on others.
  std::vector<std::string> ends{};
};
struct NewsAction {
  News news;
};
struct LogAction {
  bool warning = false;
  std::string text;
};
// While waiting, once a second: who is there, for the one updated line. Empty text: nothing to wait
// for any more.
struct ProgressAction {
  std::string text;
  bool spare = false;  // this agent waits to be needed
};

// This agent leads: compare what the nodes say of themselves. Once those
// of a round have all said it, and again when another has.
struct CompareFactsAction {
  std::vector<NodeFacts> nodes;  // those of the round by group rank, then the others
};
// This agent leads: a node has given its place to a spare; or one that had is cleared, because
// another has failed in the same way at its place.
struct SetAsideAction {
  std::string host;
  std::string why;  // it was set aside
  bool cleared = false;
};

using Action = std::variant<WatchAction, UnwatchAction, CommitAction, VoteAction,
                            PrepareWorkerStoreAction, StartAction, RenewLeaseAction, StopAction,
                            RoundStopsAction, HangAction, FinishAction, LogAction, ProgressAction,
                            CompareFactsAction, SetAsideAction, NewsAction>;

class Participant {
 public:
  Participant(Config config, Time now);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  // Of agents whose store none of them hosts this one leaves last, after a job that did not
  // succeed: it hears what became of the others' workers. Before any input.
  void leave_last();

  // Inputs, in any order and at any time; each may add actions.
  void on_key_value(const KeyValueEvent& event, Time now);
  void on_time(Time now);  // at or after next_deadline()
  void on_worker_store_ready(int round, std::uint16_t port, Time now);
  void on_workers_started(int round, Time now);
  void on_workers_succeeded(int round, Time now);  // all local workers have exited with 0
  // The first has failed; on_workers_failed() follows in a moment.
  void on_workers_failing(int round, Time now);
  void on_workers_failed(int round, FailureSummary failure,
                         Time now);  // the first failure; the rest are being stopped
  // Nothing of them is left. `end`: what they did, for the report on the node that leaves last if
  // the job has ended; at most kMaxEnd bytes, or it is left out.
  void on_workers_stopped(Time now, std::string end = {});
  // None of those that run has made progress for a long time, or one has again.
  void on_workers_stalled(int round, bool stalled, Time now);
  // The workers are being killed, or were not started, because their lease was not renewed for
  // longer than the keep-alive limit: this agent leaves. Call before what becomes of the workers.
  void on_lease_over(Time now);
  // A signal or --timeout asks this agent to stop: ends the job for all. `exit_code` is what all
  // agents give.
  void on_stop_requested(std::string reason, int exit_code, Time now);

  // A signal asks this agent to go: the job goes on without its node, which gives `exit_code`. Ends
  // the job for all if this agent hosts the store, or if all others are asked to go as well.
  void on_leave_requested(std::string reason, int exit_code, Time now);

  // What this agent says of its machine, for the leader to compare; nothing waits for it. Once.
  void on_facts(std::string sheet, Time now);

  // True if nothing is lost when this one is dropped and another made later: the store has never
  // confirmed that it knows this agent, so nobody counts on it, and nobody has asked it to stop.
  // `known`: no round has begun, so that it does not matter whether the store knows it.
  [[nodiscard]] bool dispensable(bool known = false) const;

  // Decides for the job, and is in touch with its store.
  [[nodiscard]] bool leads() const;

  // The last round has ended, and the job goes on: its next round is waited for.
  [[nodiscard]] bool between_rounds() const;
  // Nodes end the workers of the last round, this one perhaps no more.
  [[nodiscard]] bool round_stops() const;

  // What to do now, in order. Empty when nothing changed.
  [[nodiscard]] std::vector<Action> take_actions();
  // When on_time() is due; nullopt: only an input changes anything.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::rendezvous
