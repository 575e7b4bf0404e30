// One agent's part in the rendezvous: registers, follows the round, stands for leader and leads
// when it has won. A pure state machine: messages and the time go in, actions come out. No socket,
// clock, thread or coroutine, so that the simulation drives the very code that runs in production.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/key_value.hpp"

namespace drun::rendezvous {

using Time = std::chrono::steady_clock::time_point;
using Milliseconds = std::chrono::milliseconds;

enum class RankOrder { Keep, Host, Join };
enum class Resize { Now, Restart };

// What this agent brings and asks for. Constant after construction.
struct Settings {
  std::string run_id = "none";
  int min_nodes = 1;
  int max_nodes = 1;
  int local_world_size = 1;
  int max_restarts = 0;
  std::string role = "default";
  std::optional<int> node_rank;  // asked for (--node-rank, static, Slurm)

  std::string host;     // for people and for natural order: gethostname()
  std::string address;  // how others reach this node; becomes MASTER_ADDR for group rank 0
  std::uint16_t worker_port = 0;  // this agent's worker store; becomes MASTER_PORT for group rank 0
  bool is_host = false;  // carries the rendezvous store: leads first, rank 0 first, leaves last
  std::string ticket;    // unique per agent process

  // What all agents must agree on, by name: "nnodes", "program", "protocol" ... -> value (a digest
  // where it may be secret).
  std::map<std::string, std::string> agreement;

  RankOrder rank_order = RankOrder::Keep;
  Resize resize = Resize::Now;

  Milliseconds join_timeout{600'000};      // from the first wait for members until Outcome::Timeout
  Milliseconds last_call_timeout{30'000};  // upper bound of the wait between min and max
  Milliseconds quiet_period{2'000};        // min..max starts this long after the last join
  Milliseconds close_timeout{30'000};      // the host waits this long for the others to leave
  Milliseconds keep_alive{6'000};          // without the store for longer than this: give up
};

// A node's place in a round.
struct Assignment {
  int round = 0;
  int group_rank = 0;
  int group_world_size = 1;
  int first_rank = 0;
  int world_size = 1;
  int first_role_rank = 0;
  int role_world_size = 1;
  int restart_count = 0;
  std::string master_address;
  std::uint16_t master_port = 0;
};

// Why a node's workers failed, small enough (a few KiB) to travel to every node.
struct FailureSummary {
  int rank = 0;
  int local_rank = 0;
  int group_rank = 0;
  std::string host;
  std::int64_t pid = 0;
  int exit_code = 0;  // 0..255; meaningless when signal != 0
  int signal = 0;
  std::string
      cause;  // "exit code 7", "killed by SIGSEGV", "killed: out of memory", "cannot run ..."
  std::int64_t time_ms = 0;       // Unix milliseconds, of the failing node's clock; for people
  std::int64_t uptime_ms = 0;     // since the worker's start
  std::string traceback;          // from the error file, may be empty
  std::vector<std::string> tail;  // last lines of stderr
  std::string log_file;           // on the failing host, may be empty
  std::vector<std::string>
      others;  // one line for each other rank of that node that failed by itself
};

enum class End {
  Success,
  Failure,   // a worker's; `failure` says which
  Stopped,   // an agent was told to stop (signal); `exit_code` is 128+n
  Timeout,   // not enough nodes in time; `text` names who is missing
  Refused,   // this agent only: duplicate rank, disagreement, closed job ...; harms nobody else
  StoreLost  // this agent lost the store for good
};

// How the job ended for this agent, and the exit code that every agent of the job gives.
struct Outcome {
  End end = End::Success;
  int exit_code = 0;
  std::string text;  // one line for the user; empty on success
  std::optional<FailureSummary> failure;
};

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
// Only on the node of group rank 0: make the workers' store of this round ready (empty, no old
// connections), or find the port that rank 0's worker will bind; then call on_master_ready().
struct PrepareMasterAction {
  Assignment assignment;
};
// Start the workers of this round; then report through on_workers_*().
struct StartAction {
  Assignment assignment;
};
// End this node's workers, if any run; call on_workers_stopped() when nothing of them is left.
struct StopAction {
  std::string reason;
  bool immediately = false;  // no grace
};
// Leave: close the KeyValue, give the outcome's exit code. Workers are already stopped.
struct FinishAction {
  Outcome outcome;
};
struct LogAction {
  bool warning = false;
  std::string text;
};
// While waiting: who is there, for the one updated line. Empty text: nothing to wait for any more.
struct ProgressAction {
  std::string text;
};

using Action = std::variant<WatchAction, UnwatchAction, CommitAction, PrepareMasterAction,
                            StartAction, StopAction, FinishAction, LogAction, ProgressAction>;

class Participant {
 public:
  Participant(Settings settings, Time now);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  // Inputs, in any order and at any time; each may add actions.
  void on_key_value(const KeyValueEvent& event, Time now);
  void on_time(Time now);  // at or after next_deadline()
  void on_master_ready(int round, std::uint16_t master_port, Time now);
  void on_workers_started(int round, Time now);
  void on_workers_succeeded(int round, Time now);  // all local workers have exited with 0
  void on_workers_failed(int round, FailureSummary failure,
                         Time now);   // the first failure; the rest are being stopped
  void on_workers_stopped(Time now);  // nothing of them is left
  // This agent was told to stop (signal, --timeout): ends the job for all. `exit_code` is what all
  // agents give.
  void on_stop_requested(std::string reason, int exit_code, Time now);

  // What to do now, in order. Empty when nothing changed.
  [[nodiscard]] std::vector<Action> take_actions();
  // When on_time() is due; nullopt: only an input changes anything.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::rendezvous
