#include "launcher/leaving/shutdown_fsm.hpp"

#include <algorithm>

#include "base/exit_codes.hpp"

namespace drun::launcher {

using Steps = ShutdownFsm::Steps;

Steps ShutdownFsm::on_outcome(int exit_code, Owed most) {
  if (leaving()) return {};
  exit_code_ = exit_code;
  owe_at_most(most);
  if (phase_ == Phase::Unguarded) return report();
  phase_ = Phase::Sweeping;
  return {Step::Sweep};
}

Steps ShutdownFsm::on_swept() {
  // While the job runs, this means only that a round was stopped.
  if (phase_ != Phase::Sweeping) return {};
  return report();
}

Steps ShutdownFsm::report() {
  phase_ = Phase::Reporting;
  return {Step::Report};
}

Steps ShutdownFsm::on_reported() {
  if (phase_ != Phase::Reporting) return {};
  return {take_leave()};
}

Steps ShutdownFsm::on_guardian_lost() {
  if (phase_ == Phase::Abandoned) {
    cut_short();
    return {leave()};
  }
  if (phase_ == Phase::Running) phase_ = Phase::Unguarded;
  return on_swept();
}

Steps ShutdownFsm::on_link_failed() {
  owe_at_most(Owed::None);
  return on_link_closed();
}

Steps ShutdownFsm::on_link_closed() {
  if (phase_ != Phase::Goodbye && phase_ != Phase::ServingOthers) return {};
  return {leave()};
}

Steps ShutdownFsm::on_store_unneeded() {
  if (phase_ != Phase::ServingOthers) return {};
  return {leave()};
}

Steps ShutdownFsm::on_stop(StopLevel level, int signal) {
  signal_ = signal;
  switch (phase_) {
    case Phase::Running:
    case Phase::Abandoned:
    case Phase::Unguarded:
      return stop_running(level);
    case Phase::Sweeping:
    case Phase::Reporting:
    case Phase::ServingOthers:
    case Phase::Goodbye:
      return stop_leaving(level);
    case Phase::Flushing:
      return {Step::GiveUpReader};
    case Phase::Gone:
      break;
  }
  return {};
}

Steps ShutdownFsm::stop_running(StopLevel level) {
  // A user who wants drun to end does not want it to serve other jobs.
  owe_at_most(Owed::Goodbye);
  if (level == StopLevel::Ask) return {Step::StopJob};
  if (level == StopLevel::Kill) return {Step::KillWorkers};
  owe_at_most(Owed::None);
  // The outcome still comes as soon as the workers are dead; it is worth a short wait, for the
  // report. Without a guardian there is nothing to wait for here, only the other nodes.
  if (phase_ == Phase::Unguarded) {
    cut_short();
    return {Step::KillWorkers, leave()};
  }
  phase_ = Phase::Abandoned;
  return {Step::KillWorkers, Step::GiveUpWorkers};
}

// The job has its outcome already. A first request ends what is done for others; any further one
// ends the rest, and a success was not waited for.
Steps ShutdownFsm::stop_leaving(StopLevel level) {
  owe_at_most(Owed::Goodbye);
  if (level == StopLevel::Ask)
    return phase_ == Phase::ServingOthers ? Steps{take_leave()} : Steps{};
  owe_at_most(Owed::None);
  cut_short();
  if (phase_ == Phase::Sweeping && level == StopLevel::Kill) return {Step::KillWorkers};
  if (phase_ == Phase::Sweeping) return {Step::KillWorkers, Step::GiveUpWorkers};
  if (phase_ == Phase::Reporting) return {Step::GiveUpReport, leave()};
  return {Step::KillWorkers, leave()};
}

Steps ShutdownFsm::on_flushed(bool reader_lost) {
  if (phase_ != Phase::Flushing) return {};
  if (reader_lost) cut_short();
  phase_ = Phase::Gone;
  return {Step::End};
}

void ShutdownFsm::on_output_lost() {
  if (exit_code_ == 0) exit_code_ = kDrunFailed;
}

ShutdownFsm::Step ShutdownFsm::take_leave() {
  switch (owed_) {
    case Owed::ServeOthers:
      phase_ = Phase::ServingOthers;
      return Step::ServeOthers;
    case Owed::Goodbye:
      phase_ = Phase::Goodbye;
      return Step::SayGoodbye;
    case Owed::None:
      break;
  }
  return leave();
}

ShutdownFsm::Step ShutdownFsm::leave() {
  phase_ = Phase::Flushing;
  return Step::Leave;
}

void ShutdownFsm::owe_at_most(Owed most) {
  owed_ = std::min(owed_, most);
}

// A success does not count if somebody did not wait for it.
void ShutdownFsm::cut_short() {
  if (exit_code_ == 0 && signal_ != 0) exit_code_ = exit_code_of_signal(signal_);
}

}  // namespace drun::launcher
