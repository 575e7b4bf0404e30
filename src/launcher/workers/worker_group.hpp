// The workers of one round on this node, started and stopped as a unit. Decides what their exits
// mean for the node: all succeeded, one failed first, nothing left. Talks to the guardian and the
// output; the agent feeds it events and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/runnable.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// What the agent tells the rendezvous; several may hold at once.
struct GroupNews {
  bool started = false;    // all workers run
  bool succeeded = false;  // all have exited with 0
  bool stopped = false;    // nothing of them is left
  std::optional<rendezvous::FailureSummary>
      failure;  // the first failure, once its story is complete
};

class WorkerGroup {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The references must outlive the group. `host`: this node's name, for the report.
  WorkerGroup(const Options& options, std::string host, process::Guardian& guardian,
              Output& output);

  // Precondition: no workers are left of an earlier round.
  void start(const rendezvous::Assignment& assignment, Time now);
  // Ends them: the stop signal, the grace, SIGKILL; `stopped` follows, at once where nothing runs.
  [[nodiscard]] GroupNews stop(bool immediately);
  // From here on a stop sends this signal, unless --stop-signal says otherwise.
  void stop_with(int signal);
  [[nodiscard]] int stop_signal() const { return stop_signal_; }
  // The guardian is gone and everything that it started with it: forget the workers.
  [[nodiscard]] GroupNews abandon();
  [[nodiscard]] GroupNews on_event(const process::GuardianEvent& event, Time now);
  // Call after each batch of events, and at next_deadline(): after a failure the others are stopped
  // only now, so that ranks that failed in the same batch are not taken for stopped ones.
  [[nodiscard]] GroupNews on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  void forward(int signal);
  [[nodiscard]] bool idle() const { return state_ == State::Idle; }
  [[nodiscard]] bool stopping() const { return state_ == State::Stopping; }
  [[nodiscard]] int round() const { return assignment_.round; }
  // Whether one of them has drun's standard input.
  [[nodiscard]] bool has_input() const;
  // Where that worker wrote its error, if it was one of this node's last round; else empty.
  [[nodiscard]] std::string error_file(const rendezvous::FailureSummary& failure) const;
  // What each worker does, for time limits: "rank 3 (pid 4711): running for 12.3 s"; more than a
  // few are folded: "ranks 0-63: running for at least 12.3 s".
  [[nodiscard]] std::vector<std::string> describe(Time now) const;

 private:
  enum class State { Idle, Running, Stopping };
  struct Worker {
    int local_rank = 0;
    pid_t pid = 0;
    Time requested;
    Time started;
    Time ended;
    bool running = false;
    bool exited = false;
    bool failed_by_itself = false;
    process::ExitStatus status;
    int spawn_error = 0;
    std::string cause;
    std::string error_file;  // where torch's @record writes; may be empty
  };

  [[nodiscard]] GroupNews on_exit(Worker& worker, process::WorkerId id, Time now);
  [[nodiscard]] rendezvous::FailureSummary summarize();
  [[nodiscard]] static std::string traceback_of(const Worker& worker);
  [[nodiscard]] std::string core_file_of(const Worker& worker) const;
  void begin_stop(bool immediately);
  void flush_failure(GroupNews& news);

  const Options& options_;
  std::string host_;
  process::Guardian& guardian_;
  Output& output_;
  int stop_signal_;
  State state_ = State::Idle;
  rendezvous::Assignment assignment_;
  std::map<process::WorkerId, Worker> workers_;
  process::WorkerId next_id_ = 1;
  std::size_t not_started_ = 0;
  std::size_t not_exited_ = 0;
  // Workers that were not asked of the guardian, because what they run is not there. Heard of at
  // the next on_time().
  std::vector<std::pair<process::WorkerId, Unrunnable>> refused_;
  bool node_refused_ = false;  // all of them, for one reason: told once
  std::optional<process::WorkerId> first_failure_;
  std::int64_t failure_time_ms_ = 0;
  std::optional<Time> report_failure_at_;  // waits for the other ranks' own failures and last lines
};

}  // namespace drun::launcher
