#include "launcher/workers/restart_policy.hpp"

#include <cerrno>
#include <csignal>

#include "base/exit_codes.hpp"

namespace drun::launcher {
namespace {

// As the lists have it: a name, not a sentence.
std::string how_it_ended(const process::ExitStatus& status) {
  return status.signal != 0 ? process::signal_name(status.signal) : process::describe(status);
}

}  // namespace

bool failed_by_itself(const process::ExitStatus& status, const process::ExitStatus& first,
                      int stop_signal) {
  // SIGKILL means the end of the grace; the kernel seldom runs out of memory just then.
  if (status.signal != 0) return status.signal != stop_signal && status.signal != SIGKILL;
  // A shell that was asked to stop ends with 128 + the signal: that may be the first one's code
  // too.
  return first.signal == 0 && status.code == first.code &&
         status.code != exit_code_of_signal(stop_signal);
}

bool may_requeue(const RestartPolicy& policy, const WorkerEnd& failure) {
  return !policy.no_requeue_on.contains(failure.status);
}

bool may_restart(const RestartPolicy& policy, const WorkerEnd& failure) {
  const int error = failure.spawn_error;
  if (error != 0 && error != EAGAIN && error != ENOMEM) return false;
  return may_requeue(policy, failure) && why_no_restart(policy, failure).empty();
}

std::string why_no_restart(const RestartPolicy& policy, const WorkerEnd& failure) {
  if (policy.no_restart_on.contains(failure.status))
    return "--no-restart-on lists " + how_it_ended(failure.status);
  if (policy.restart_on && !policy.restart_on->contains(failure.status))
    return "--restart-on does not list " + how_it_ended(failure.status);
  return "";
}

void RoundFailures::on_end(process::WorkerId worker, const WorkerEnd& end,
                           std::optional<int> stop_signal, Time now) {
  // A stop that came before it began is no failure of its own.
  if (end.success() || end.spawn_error == ECANCELED) return;
  if (stop_signal) {
    // A worker that ends in a stop, with no failure before it, does as it was told.
    if (first_ && failed_by_itself(end.status, first_status_, *stop_signal)) others_.insert(worker);
  } else if (first_) {
    others_.insert(worker);  // in the same moment: the stop is not under way yet
  } else {
    first_ = worker;
    first_status_ = end.status;
    report_at_ = now + kSettle;
  }
}

bool RoundFailures::take_report(Time now, bool complete) {
  if (!report_at_ || (!complete && now < *report_at_)) return false;
  report_at_.reset();
  return true;
}

}  // namespace drun::launcher
