// This agent as a member of its job: feeds rendezvous::Participant, and does what it asks, with the
// workers, the store and the user. One thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

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
  // `finish` is called from inside perform_actions(), with how the job ended.
  ParticipantDriver(const Parts& parts, std::function<void(rendezvous::Outcome)> finish)
      : parts_(parts), finish_(std::move(finish)) {}

  // Registers as `node`.
  void join(const NodeIdentity& node);
  // Joins no more, until the next join(): the store never knew this agent.
  void drop() { participant_.reset(); }
  [[nodiscard]] bool joined() const { return participant_.has_value(); }
  // Nothing would be lost by drop().
  [[nodiscard]] bool dispensable() const { return joined() && participant_->dispensable(); }

  // While joined.
  void on_event(const rendezvous::KeyValueEvent& event, Time now);
  void on_workers(WorkerNews news, Time now);
  // The workers may run on: the store has answered what was sent then.
  void renew_lease(Time sent);
  void stop_job(const std::string& reason, int exit_code, Time now);
  // As stop_job(), but the job goes on without this node.
  void leave_job(const std::string& reason, int exit_code, Time now);
  // Both do nothing before join().
  void on_time(Time now);
  // Does what the rendezvous asks for, until it has nothing more to ask.
  void perform_actions();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  void on_guardian_lost(const std::string& reason, Time now);
  void perform(rendezvous::WatchAction& action);
  void perform(const rendezvous::UnwatchAction& action);
  void perform(rendezvous::CommitAction& action);
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
  bool finished_ = false;
};

}  // namespace drun::launcher
