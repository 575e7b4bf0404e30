// This agent as a member of its job: feeds rendezvous::Participant, and does what it asks, with the
// workers, the store and the user. One thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "launcher/agent/own_ranks.hpp"
#include "launcher/agent/status_reporter.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/options/options.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

class ParticipantDriver {
 public:
  using Time = rendezvous::Time;

  // What it works with; all of it must outlive this.
  struct Parts {
    const Options& options;
    StatusReporter& status;
    WorkerSupervisor& workers;
    BackendLink& backend;
  };
  // `finish` is called once, from inside the calls below, with how the job ended; none of them may
  // follow it but renew_lease().
  ParticipantDriver(const Parts& parts, std::function<void(rendezvous::Outcome)> finish)
      : parts_(parts), finish_(std::move(finish)) {}

  // Registers as `node`.
  void join(const NodeIdentity& node);
  // Joins no more, until the next join(): the store never knew this agent.
  void drop() { participant_.reset(); }
  [[nodiscard]] bool joined() const { return participant_.has_value(); }
  // Nothing would be lost by drop().
  [[nodiscard]] bool dispensable(bool known) const {
    return joined() && participant_->dispensable(known);
  }

  // While joined.
  void on_event(const rendezvous::KeyValueEvent& event, Time now);
  // The workers may run on: the store has answered what was sent then.
  void renew_lease(Time sent);

  // Those below at any time. Who has not joined has nobody to tell of the end.
  void on_workers(WorkerNews news, Time now);
  // This agent was told to stop: the job ends on all nodes, or goes on without this one.
  void on_stop_signal(const std::string& reason, int signal, Time now);
  // Ends the job on all nodes.
  void stop_job(const std::string& reason, int exit_code, Time now);
  // It has left a job that goes on.
  [[nodiscard]] bool left_job() const { return left_job_; }
  // What is due: of the limits of time too.
  void on_time(Time now);
  // Does what the rendezvous asks for, until it has nothing more to ask.
  void perform_actions();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  void on_guardian_lost(const std::string& reason, Time now);
  void leave_job(const std::string& reason, int exit_code, Time now);
  void finish(rendezvous::Outcome outcome);
  void perform(rendezvous::WatchAction& action);
  void perform(const rendezvous::UnwatchAction& action);
  void perform(rendezvous::CommitAction& action);
  void perform(const rendezvous::VoteAction& action);
  void perform(const rendezvous::PrepareWorkerStoreAction& action);
  void perform(const rendezvous::StartAction& action);
  void perform(const rendezvous::RenewLeaseAction& action);
  void perform(const rendezvous::StopAction& action);
  void perform(const rendezvous::RoundStopsAction& action);
  void perform(rendezvous::FinishAction& action);
  void perform(const rendezvous::LogAction& action);
  void perform(const rendezvous::ProgressAction& action);

  const Parts parts_;
  const std::function<void(rendezvous::Outcome)> finish_;
  std::optional<rendezvous::Participant> participant_;
  std::optional<std::chrono::milliseconds> lease_;  // nullopt: the workers need none
  OwnRanks own_ranks_{look_for_own_ranks};
  bool left_job_ = false;
  bool finished_ = false;
};

}  // namespace drun::launcher
