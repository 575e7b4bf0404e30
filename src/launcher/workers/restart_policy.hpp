// Which failures of a round are the workers' own, when the first of them is reported, and whether
// the workers may be started again after it. Pure: time comes in as an argument.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "launcher/options/options.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/workers/worker.hpp"

namespace drun::launcher {

// For a worker that ended, not with 0, while `stop_signal` was stopping it because of the failure
// `first`: whether it failed of its own accord. If it crashed, it did. An exit code may be the
// answer to the stop, unless it is the very code of the first failure.
[[nodiscard]] bool failed_by_itself(const process::ExitStatus& status,
                                    const process::ExitStatus& first, int stop_signal);

// Whether another try may be made after this failure: --restart-on and --no-restart-on, and never
// after a program that cannot be run: it cannot be run a moment later either.
[[nodiscard]] bool may_restart(const RestartPolicy& policy, const WorkerEnd& failure);

// Which of the user's lists forbids it, as in "--restart-on does not list exit code 8"; "": none.
[[nodiscard]] std::string why_no_restart(const RestartPolicy& policy, const WorkerEnd& failure);

// Whether another job may make one: not after --no-requeue-on.
[[nodiscard]] bool may_requeue(const RestartPolicy& policy, const WorkerEnd& failure);

// The failures of one round on this node.
class RoundFailures {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How long the other ranks' own failures are collected before the first is reported. The stop is
  // under way meanwhile.
  static constexpr std::chrono::milliseconds kSettle{150};

  // `stop_signal`: the signal that is stopping the workers; nullopt: they are not being stopped.
  // Precondition: once for each worker.
  void on_end(process::WorkerId worker, const WorkerEnd& end, std::optional<int> stop_signal,
              Time now);

  // The one that failed first, before anything was stopped.
  [[nodiscard]] std::optional<process::WorkerId> first() const { return first_; }
  // Those besides the first that failed by themselves.
  [[nodiscard]] const std::set<process::WorkerId>& others() const { return others_; }

  // Whether the first failure is to be reported now; true once. `complete`: no worker is left that
  // could still fail.
  [[nodiscard]] bool take_report(Time now, bool complete);
  // When take_report() is due.
  [[nodiscard]] std::optional<Time> next_deadline() const { return report_at_; }
  // The others get so much longer to fail by themselves.
  void put_off(std::chrono::milliseconds time) {
    if (report_at_) *report_at_ += time;
  }

 private:
  std::optional<process::WorkerId> first_;
  process::ExitStatus first_status_;
  std::set<process::WorkerId> others_;
  std::optional<Time> report_at_;
};

}  // namespace drun::launcher
