// How an agent keeps its workers: the group of the current round, the time limits of the user, and
// at the end whatever the workers have left behind. Decides; the processes are behind
// ProcessRunner, and time comes in as an argument.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/end_notice.hpp"
#include "launcher/workers/time_limits.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

// What became of the workers; several may hold at once.
struct WorkerNews {
  GroupNews group;             // for the rendezvous
  bool grace_begins = false;   // the workers were asked to end; a countdown to SIGKILL runs
  bool grace_over = false;     // none is left, so there is nothing to count down to
  bool swept = false;          // after sweep(): nothing that the workers started is left
  std::string left_behind;     // what a stop could not end, as a sentence; empty: nothing
  bool lease_over = false;     // the guardian kills the workers, or will start none
  std::string guardian_ended;  // why, as a sentence; the workers died with it
};

class Supervision {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The references must outlive this. `host`: this node's name.
  Supervision(const WorkerSpec& spec, std::string host, process::ProcessRunner& processes,
              WorkerOutput& output, FileWork& file_work, Time now, RoundServices services = {});

  // ---- a round ----

  // Precondition: no workers are left of an earlier round.
  void start(const rendezvous::Assignment& assignment, Time now);
  [[nodiscard]] WorkerNews stop(const rendezvous::StopAction& action, Time now);
  [[nodiscard]] WorkerNews on_event(const process::GuardianEvent& event, Time now);
  // As WorkerGroup's.
  void on_fault(int local_rank, const RankFault& fault) { group_.on_fault(local_rank, fault); }
  // As ProcessRunner's. If the guardian does not say soon after its end that it is over, both
  // helpers may have been stopped by somebody, and are woken.
  void renew_lease(Time since, std::chrono::milliseconds length);
  // Call after each batch of events, and at next_deadline().
  [[nodiscard]] WorkerNews on_time(Time now);
  [[nodiscard]] std::optional<Time> next_deadline(Time now) const;
  [[nodiscard]] const WorkerGroup& group() const { return group_; }
  void forward(int signal) { group_.forward(signal); }
  // Somebody told drun to stop with this signal: the workers are stopped with it too, unless
  // --stop-signal says otherwise.
  void stop_with(int signal) { group_.stop_with(signal); }

  // As WorkerGroup's.
  void end_round() { group_.end_round(); }

  // ---- the time limits ----

  // Which limit is over, as a reason to end the job; each is reported once.
  [[nodiscard]] std::optional<std::string> expired(Time now) { return limits_.expired(now); }
  // When the job ends, as far as this node knows; `wall` is now.
  [[nodiscard]] std::optional<EndNotices::WallTime> job_end(Time now,
                                                            EndNotices::WallTime wall) const {
    return limits_.job_end(now, wall);
  }
  // --warn-before: tells the workers, and the user. After each on_time().
  void warn_of_end(Time now, EndNotices::WallTime wall);
  // The countdown to SIGKILL, if one runs. `interactive`: the user told this very drun to stop.
  [[nodiscard]] std::optional<std::string> countdown(Time now, bool interactive) const;

  // ---- the end ----

  // Ends whatever is left of the workers. `swept` if nothing can be left; otherwise news with it
  // follows, unless the guardian is gone and all workers with it. From here on the rendezvous is
  // told nothing and cannot ask for anything.
  [[nodiscard]] WorkerNews sweep();
  // The grace is over now.
  void kill();
  // No event of the guardian's can matter any more.
  [[nodiscard]] bool over() const { return phase_ == Phase::Swept || phase_ == Phase::Lost; }

  // The workers are being stopped and need their time, so they must not be suspended.
  [[nodiscard]] bool ending() const { return phase_ != Phase::Keeping || limits_.in_grace(); }
  // Whether one of them may read drun's standard input.
  [[nodiscard]] bool has_input() const { return phase_ == Phase::Keeping && group_.has_input(); }

 private:
  enum class Phase {
    Keeping,   // rounds begin and end
    Sweeping,  // the job is over for this agent
    Swept,     // nothing of the workers is left
    Lost,      // the guardian is gone
  };

  // The rendezvous is told nothing more. If the guardian is lost, it is still told that nothing is
  // left.
  [[nodiscard]] bool leaving() const { return phase_ == Phase::Sweeping || phase_ == Phase::Swept; }
  [[nodiscard]] WorkerNews heard(GroupNews group);

  const WorkerSpec& spec_;
  process::ProcessRunner& processes_;
  WorkerGroup group_;
  TimeLimits limits_;
  EndNotices notices_;
  std::optional<Time> notice_due_;
  std::optional<Time> wake_due_;
  bool leads_ = false;  // says what is for all nodes
  Phase phase_ = Phase::Keeping;
  bool nothing_left_ = false;  // the guardian's last word: a stop has ended everything
  int restart_count_ = 0;
  std::string last_failure_;  // on this node, in its last round, in full
  std::string stop_reason_;   // short enough for a line of a terminal
  bool signalled_ = false;    // a signal to drun is that reason
};

}  // namespace drun::launcher
