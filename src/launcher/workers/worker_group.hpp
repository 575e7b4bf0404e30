// The workers of one round on this node, started and stopped as a unit. Decides what their exits
// mean for the node: all succeeded, one failed first, nothing left. Talks to the guardian and the
// output; the agent feeds it events and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_worker.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/report/stopped_ranks.hpp"
#include "launcher/workers/failure_summary.hpp"
#include "launcher/workers/preflight.hpp"
#include "launcher/workers/preparation.hpp"
#include "launcher/workers/restart_policy.hpp"
#include "launcher/workers/round_services.hpp"
#include "launcher/workers/worker.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

class RoundLaunch;

// What the agent tells the rendezvous; several may hold at once.
struct GroupNews {
  bool started = false;    // all workers run
  bool succeeded = false;  // all have exited with 0
  bool stopped = false;    // nothing of them is left
  bool failing = false;    // the first of them has failed, where other nodes are to know it at once
  std::optional<rendezvous::FailureSummary>
      failure;  // the first failure, once its story is complete
};

class WorkerGroup {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The references must outlive the group. `host`: this node's name, for the report.
  WorkerGroup(const WorkerSpec& spec, std::string host, process::ProcessRunner& processes,
              WorkerOutput& output, FileWork& file_work, RoundServices services = {});

  // Precondition: no workers are left of an earlier round. The guardian is asked for them as soon
  // as their files are made, and it is known where their peers can listen.
  void start(const rendezvous::Assignment& assignment, Time now);
  // Cancels a start() that still prepares: the guardian is not asked for its workers any more.
  void call_off();
  // Ends them: the stop signal, the grace, SIGKILL; `stopped` follows, at once if nothing runs.
  [[nodiscard]] GroupNews stop(bool immediately, Time now);
  // The grace of a stop is cut short: from here on SIGKILL says nothing of a worker.
  void hurry() { last_stop_.hurried |= state_ != State::Idle; }
  // From here on a stop sends this signal, unless --stop-signal says otherwise.
  void stop_with(int signal);
  [[nodiscard]] int stop_signal() const { return stop_signal_; }
  // The guardian is gone and everything that it started with it: forget the workers. A failure that
  // is known is told without what is still read of it.
  [[nodiscard]] GroupNews abandon(Time now);
  // Events of workers that are not in this round are ignored.
  [[nodiscard]] GroupNews on_event(const process::GuardianEvent& event, Time now);
  // The service has found that this worker failed: unless it has ended, the next on_time() takes it
  // for failed as it is.
  void on_fault(int local_rank, const RankFault& fault);
  // Call after each batch of events, and at next_deadline(): after a failure the others are stopped
  // only now, so that ranks that failed in the same batch are not taken for stopped ones.
  [[nodiscard]] GroupNews on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;

  void forward(int signal) { processes_.signal_all(signal); }
  [[nodiscard]] bool idle() const { return state_ == State::Idle; }
  // They were asked for, and nothing has begun to end them.
  [[nodiscard]] bool running() const { return state_ == State::Running; }
  [[nodiscard]] bool stopping() const {
    return state_ == State::Stopping || state_ == State::Stopped;
  }
  // Whether the guardian has been asked for some, and has not ended all.
  [[nodiscard]] bool has_workers() const {
    return state_ == State::Running || state_ == State::Stopping;
  }
  // All of the round have been started.
  [[nodiscard]] bool all_started() const { return has_workers() && not_started_ == 0; }
  [[nodiscard]] int round() const { return assignment_.round; }
  // The last round's.
  [[nodiscard]] const rendezvous::Assignment& assignment() const { return assignment_; }
  [[nodiscard]] const Workers& workers() const { return workers_; }
  // Whether one of them has drun's standard input.
  [[nodiscard]] bool has_input() const;
  // The file in which that worker wrote its error, if it was one of this node's last round; else
  // empty.
  [[nodiscard]] std::string error_file(const rendezvous::FailureSummary& failure) const;
  // What each worker does, for time limits; see describe_workers().
  [[nodiscard]] std::vector<RankState> describe(Time now) const;
  // What the last stop found, or the round's end if the guardian was lost; nothing if the workers
  // ended by themselves.
  [[nodiscard]] StoppedRanks stopped_ranks() const;
  // The job goes on after the last round, whose workers are gone.
  void end_round() { last_stop_.over |= state_ == State::Idle; }
  // stopped_ranks() if the job ended with this round: else nothing.
  [[nodiscard]] StoppedRanks ranks_at_end() const;

 private:
  enum class State {
    Idle,
    Preparing,  // the file systems and the other nodes are asked; no worker was started
    Running,
    Stopping,
    Stopped  // all are gone; the others are told after the failure
  };
  // Failures that are reported as soon as it is known what the workers left behind.
  struct Report {
    RoundFailures failures;
    std::optional<RemainsOf> remains;  // nullopt: still read
  };
  struct Stop {
    bool noted = false;                  // which workers ran, and `silence`
    bool over = false;                   // the job went on
    bool hurried = false;                // the workers had no grace, or not all of it
    std::uint32_t processes_killed = 0;  // workers included
    std::string silence;                 // when it began
  };

  void ask_for_peers();
  [[nodiscard]] bool ready(Time now) const {
    return prepared_ && peers_ && (!start_held_until_ || now >= *start_held_until_);
  }
  void launch(Time now);
  [[nodiscard]] std::optional<LaunchError> launch_worker(const RoundLaunch& launch,
                                                         const StreamLabel& label, Worker& worker,
                                                         WorkerFiles& files);
  [[nodiscard]] Worker* find(process::WorkerId id);
  [[nodiscard]] GroupNews on(const process::Spawned& spawned, Time now);
  [[nodiscard]] GroupNews on(const process::SpawnFailed& failed, Time now);
  [[nodiscard]] GroupNews on(const process::Exited& exited, Time now);
  [[nodiscard]] GroupNews on(const process::Stopped& stopped, Time now);
  [[nodiscard]] GroupNews on(const process::LeaseOver&, Time now);
  [[nodiscard]] GroupNews on(const process::GuardianLost& lost, Time now);
  [[nodiscard]] GroupNews on_end(process::WorkerId id, WorkerEnd end, std::string cause, Time now);
  // Whether the leader is to know at once.
  bool on_first_failure(process::WorkerId id, Time now);
  bool condemn_faulty(Time now);
  void go_idle();
  void begin_stop(bool immediately, Time now);
  void note_running(Time now);
  void report_failure(GroupNews& news, Time now, bool complete);
  void read_remains();
  [[nodiscard]] FailedRound failed_round(const RoundFailures& failures) const;
  void end_stop(GroupNews& news);

  const WorkerSpec& spec_;
  const std::string host_;
  process::ProcessRunner& processes_;
  WorkerOutput& output_;
  FileWork& file_work_;
  const RoundServices services_;
  const std::shared_ptr<const Program> program_;  // for another thread
  int stop_signal_;
  State state_ = State::Idle;
  rendezvous::Assignment assignment_;
  int starts_ = 0;
  std::vector<StreamLabel> labels_;
  std::optional<Preparation> prepared_;         // to be launched
  std::optional<PeerDirectory::Places> peers_;  // to be told; empty if nobody asks
  std::optional<Time> start_held_until_;        // something else is to be over first
  Workers workers_;
  RoundFailures failures_;
  std::int64_t failure_time_ms_ = 0;  // of the first one
  std::optional<Report> report_;      // the next one
  process::WorkerId next_id_ = 1;
  std::size_t not_started_ = 0;
  std::size_t not_ended_ = 0;
  // Workers that the guardian was not asked to start, because their program is not there, or
  // nowhere their output could go. Reported at the next on_time().
  std::vector<std::pair<process::WorkerId, LaunchError>> refused_;
  bool one_reason_ = false;         // for all of them
  bool warned_ = false;             // of the program
  Stop last_stop_;                  // or the round's end, if the guardian was lost
  std::optional<Time> stop_at_;     // after the first failure; nullopt: at once
  std::optional<Time> held_until_;  // likewise: something is done first
};

}  // namespace drun::launcher
