// This agent as a member of its job: feeds rendezvous::Participant, and does what it asks, with the
// workers, the store and the user. One thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_worker.hpp"
#include "launcher/agent/facts_report.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/options/options.hpp"
#include "launcher/report/stopped_ranks.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/watch/own_ranks.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/participant.hpp"

namespace drun::launcher {

class ParticipantDriver {
 public:
  using Time = rendezvous::Time;

  // What it works with; all of it must outlive this.
  struct Parts {
    const Options& options;
    const std::string& host_name;
    StatusReporter& status;
    WorkerSupervisor& workers;
    BackendLink& backend;
    EventReporter& events;
    FileWork* files = nullptr;  // for --exclude-file; null: it is not written
    // Before workers are stopped: true if `go_on` will be called later, from the loop, or the stop
    // is overtaken by another. Empty: never.
    std::function<bool(const rendezvous::StopAction& action, std::function<void()> go_on)>
        hold_stop = {};
  };
  // `finish` is called once, from inside the calls below, with how the job ended; only on_event()
  // and left_unannounced() may follow it. `hang`: no worker of the job makes progress, see
  // HangAction.
  ParticipantDriver(
      const Parts& parts, std::function<void(rendezvous::Outcome)> finish,
      std::function<void()> hang = [] {})
      : parts_(parts), finish_(std::move(finish)), hang_(std::move(hang)) {}

  // Registers as `node`.
  void join(const NodeIdentity& node);
  // Joins no more, until the next join(): the store never knew this agent.
  void drop() { participant_.reset(); }
  // The outcome is known.
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool joined() const { return participant_.has_value(); }
  // Nothing would be lost by drop().
  [[nodiscard]] bool dispensable(bool known) const {
    return joined() && !finished_ && participant_->dispensable(known);
  }

  // While joined. After the end it only renews the lease, under which what is left of the workers
  // is swept.
  void on_event(const rendezvous::KeyValueEvent& event, Time now);

  // Those below at any time. An agent that has not joined tells nobody of the end.
  void on_workers(WorkerNews news, Time now);
  // As Participant's, of the last round.
  void on_workers_stalled(bool stalled, Time now);
  // This agent was told to stop ("received SIGTERM"): the job ends on all nodes, or goes on without
  // this one.
  void on_stop_signal(const std::string& request, int signal, Time now);
  // Ends the job on all nodes, and with it whether or not it could go on without this one.
  void stop_job(const std::string& reason, int exit_code, Time now);
  // This node cannot run the job as its options say: ends it on all nodes.
  void refuse_job(const std::string& why, Time now);
  // The rest of the job may wait for this agent, which ended so, or go on without it: it never
  // joined, was refused, was told to go, or lost the store.
  [[nodiscard]] bool left_unannounced(rendezvous::End end) const;
  // What the workers of other nodes did at the end: on the node that leaves last, else empty.
  [[nodiscard]] const std::vector<StoppedRanks>& others_at_end() const { return others_at_end_; }
  // This node decides for the job.
  [[nodiscard]] bool leads() const { return joined() && participant_->leads(); }
  // The job waits until the workers of its last round are gone on all nodes.
  [[nodiscard]] bool round_stops() const { return joined() && participant_->round_stops(); }
  // What this node says of its machine, for the leader. Once; it goes with every join().
  void set_facts(std::string sheet, Time now);
  // What is due: of the limits of time too.
  void on_time(Time now);
  // Does what the rendezvous asks for, until it has nothing more to ask.
  void perform_actions();
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  [[nodiscard]] std::string on_this_node(const std::string& text) const;
  [[nodiscard]] std::string told_at_end() const;
  void on_guardian_lost(const std::string& reason, Time now);
  void leave_job(const std::string& reason, int exit_code, Time now);
  void renew_lease(Time sent);
  void compare_facts();
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
  void perform(const rendezvous::HangAction& action);
  void perform(rendezvous::FinishAction& action);
  void perform(const rendezvous::LogAction& action);
  void perform(const rendezvous::ProgressAction& action);
  void perform(rendezvous::CompareFactsAction& action);
  void perform(const rendezvous::SetAsideAction& action);
  void perform(const rendezvous::NewsAction& action);

  const Parts parts_;
  const std::function<void(rendezvous::Outcome)> finish_;
  const std::function<void()> hang_;
  std::optional<rendezvous::Participant> participant_;
  std::optional<std::chrono::milliseconds> lease_;  // nullopt: the workers need none
  std::string facts_;                               // empty: not known yet
  // Compared in another thread, one after the other; of several that wait the last one counts.
  std::shared_ptr<FactsReport> facts_report_ = std::make_shared<FactsReport>();
  std::shared_ptr<rendezvous::CompareFactsAction> to_compare_;
  bool comparing_ = false;
  std::vector<StoppedRanks> others_at_end_;
  OwnRanks own_ranks_{look_for_own_ranks};
  bool left_job_ = false;  // which goes on
  bool finished_ = false;
};

}  // namespace drun::launcher
