// What looks after the workers and tells of the job beside the agent's main path: hangs, what
// --preflight compares, the answers to drunctl on this host, the status page and its kind.
#pragma once

#include <sys/resource.h>

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "launcher/agent/hang_desk.hpp"
#include "launcher/agent/own_facts.hpp"
#include "launcher/agent/participant_driver.hpp"
#include "launcher/backend/backend_link.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/job_stacks/agent_stacks.hpp"
#include "launcher/options/options.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/views/job_teller.hpp"
#include "launcher/views/job_watchers.hpp"
#include "launcher/views/key_door.hpp"
#include "launcher/views/status_door.hpp"
#include "launcher/views/usage_teller.hpp"
#include "launcher/watch/gpu_watch.hpp"
#include "launcher/workers/worker_group.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/key_value.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class AgentWatch {
 public:
  // All of it must outlive this.
  struct Parts {
    asio::io_context& io;
    const Options& options;
    const std::string& host_name;
    WorkerSupervisor& workers;
    BackendLink& backend;
    ParticipantDriver& participant;
    EventReporter& events;
    StatusReporter& status;
    AgentStacks& stacks;
    GpuLedger& gpus;
    std::function<void()> news;  // the workers, or the participant, have something to do
  };
  // `open_files`: the limit of the workers.
  AgentWatch(const Parts& parts, const std::optional<rlimit>& open_files);

  void start();
  // Lets the loop end.
  void cancel();

  // The agent has a store, and is this node; it has none; what it had is not to be used any more.
  void joined(const NodeIdentity& node);
  void dropped();
  void forget_store();
  // The agent has an outcome, and may stay for long, as where its store serves other jobs.
  void job_over();
  // What it was, when nothing of the workers is left.
  void tell_end(const rendezvous::Outcome& outcome) { watchers_.tell_end(outcome); }
  // It leaves the job, whose store may still be used.
  void leaves_store() { set_link(nullptr); }
  // Whether the event is nobody else's business.
  [[nodiscard]] bool on_event(const rendezvous::KeyValueEvent& event);
  // Before the rendezvous hears of it.
  void on_workers(const GroupNews& news);
  // As HangDesk's.
  void on_hang() { hangs_.on_hang(); }
  void on_timer(const hang::FileTimers::Expired& timer) { hangs_.on_timer(timer); }
  void on_held(bool held) { hangs_.on_held(held); }
  [[nodiscard]] bool hold(const rendezvous::StopAction& action, std::function<void()> go_on) {
    return hangs_.hold(action, std::move(go_on));
  }
  // What was written about the workers while they ran, as far as it is known.
  [[nodiscard]] LeftFiles left_files() const { return {parts_.stacks.files(), hangs_.dumps()}; }

  // Null: not asked for.
  [[nodiscard]] UsageSummary* summary() { return watchers_.summary(); }
  [[nodiscard]] MetricsFile* metrics_file() { return watchers_.metrics_file(); }

 private:
  [[nodiscard]] status::AgentStatus own() const;
  [[nodiscard]] StatusDoor::Answers answers();
  void open_key_door();
  void tell_whether_open(const NodeIdentity& node);
  void set_link(rendezvous::KeyValue* link);
  void on_facts(std::string sheet);

  const Parts parts_;
  HangDesk hangs_;
  OwnFacts facts_;
  JobTeller job_;
  UsageTeller usage_;
  GpuWatch gpus_;
  StatusDoor door_;
  KeyDoor key_door_;
  JobWatchers watchers_;
  bool told_open_ = false;
};

}  // namespace drun::launcher
