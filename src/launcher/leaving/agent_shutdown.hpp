// How an agent leaves: does what ShutdownFsm decides, with the workers, the store, the output and
// the user. One thread: the loop's.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "launcher/backend/backend_link.hpp"
#include "launcher/leaving/final_files.hpp"
#include "launcher/leaving/output_flush.hpp"
#include "launcher/leaving/report_file.hpp"
#include "launcher/leaving/shutdown_fsm.hpp"
#include "launcher/leaving/store_linger.hpp"
#include "launcher/options/options.hpp"
#include "launcher/output/output.hpp"
#include "launcher/signals/stop_requests.hpp"
#include "launcher/telling/event_reporter.hpp"
#include "launcher/telling/status_reporter.hpp"
#include "launcher/views/metrics_file.hpp"
#include "launcher/views/usage_summary.hpp"
#include "launcher/workers/worker_supervisor.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

class AgentShutdown {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // What it works with; all of it must outlive this.
  struct Parts {
    asio::io_context& io;
    const Options& options;
    Output& output;
    StatusReporter& status;
    WorkerSupervisor& workers;
    BackendLink& backend;
    EventReporter& events;
    UsageSummary* summary = nullptr;      // null: nobody wants one
    MetricsFile* metrics_file = nullptr;  // likewise
  };
  struct Calls {
    // The first request to stop: "received SIGTERM". End the job with this signal.
    std::function<void(const std::string& request, int signal)> stop_job;
    // The job cannot be run as its options say: end it.
    std::function<void(const std::string& why)> refuse_job;
    // As ParticipantDriver's.
    std::function<bool(rendezvous::End end)> left_unannounced;
    // Nothing is waited for any more.
    std::function<void()> gone;
    // As ParticipantDriver's. May be empty: no.
    std::function<bool()> leads{};
    // The store is about to be out of reach. May be empty.
    std::function<void()> leaves_store{};
    // To those who look on. May be empty.
    std::function<void(const rendezvous::Outcome&)> tell_end{};
    // For --report. May be empty: nothing.
    std::function<LeftFiles()> left_files{};
    // The same of the ranks of other nodes.
    std::function<std::vector<StoppedRanks>()> others_at_end{};
  };

  AgentShutdown(const Parts& parts, Calls calls);

  // The agent begins: --report says so.
  void begin();
  // How the job ended; only the first outcome counts.
  void on_outcome(rendezvous::Outcome outcome);
  // What matters of it for the end, and for what waits for that.
  void on_workers(const WorkerNews& news, Time now);
  void on_stop_signal(int signal);
  void on_event(const rendezvous::KeyValueEvent& event);
  // Counts down to SIGKILL while workers have their grace.
  void on_time(Time now) { show_countdown(now, false); }

  // The outcome is known: whatever the rendezvous says changes nothing.
  [[nodiscard]] bool leaving() const { return fsm_.leaving(); }
  [[nodiscard]] int exit_code() const { return fsm_.exit_code(); }
  // Somebody has asked it to stop.
  [[nodiscard]] bool asked_to_stop() const { return requests_.any(); }
  // The rest of the job may wait for this agent, or go on without it.
  [[nodiscard]] bool left_unannounced() const { return calls_.left_unannounced(outcome_.end); }

 private:
  void perform(const ShutdownFsm::Steps& steps);
  void perform(ShutdownFsm::Step step);
  void show_countdown(Time now, bool at_once);
  void kill_workers();
  void report();
  void summarize();
  void serve_others();
  void linger(const rendezvous::KeyValueEvent& event);
  void leave();
  [[nodiscard]] bool knows_end() const;
  [[nodiscard]] Owed owed() const;
  [[nodiscard]] std::string request() const;

  const Parts parts_;
  const Calls calls_;
  ShutdownFsm fsm_;
  StopRequests requests_;
  rendezvous::Outcome outcome_;
  ReportFile report_file_;
  FinalFiles files_;
  OutputFlush flush_;
  std::optional<StoreLinger> linger_;  // while other jobs may need the store
};

}  // namespace drun::launcher
