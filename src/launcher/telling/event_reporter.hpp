// Tells what happens on this agent as events, to --events and --on-event, and keeps the last ones
// for the status page. With none of them every call returns at once.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "drun/events/event.hpp"
#include "launcher/backend/node_identity.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/options/options.hpp"
#include "launcher/signals/agent_signals.hpp"
#include "launcher/telling/event_hooks.hpp"
#include "launcher/telling/event_log.hpp"
#include "launcher/telling/event_memory.hpp"
#include "launcher/workers/hung_ranks.hpp"
#include "launcher/workers/supervision.hpp"
#include "launcher/workers/worker_watch.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/types.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks.
class EventReporter final : public WorkerWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // The references must outlive this. `begun`: this agent has.
  EventReporter(asio::io_context& io, const Options& options, const std::string& host,
                Clock::time_point begun = Clock::now());

  // From here on what workers have had of GPUs is told; `gpus` must outlive this.
  void tell_gpus(const GpuLedger& gpus) { gpus_ = &gpus; }

  // Empty unless there is a status page.
  [[nodiscard]] const EventMemory& memory() const { return memory_; }
  // Null: nobody wants to know.
  [[nodiscard]] WorkerWatch* worker_watch() { return on() ? this : nullptr; }

  void begin();
  void joined(const NodeIdentity& node);
  void on_link(const rendezvous::KeyValueEvent& event);
  void tell(const rendezvous::News& news);
  void round_begins(const rendezvous::Assignment& place);
  void round_stops(const rendezvous::StopAction& stop);
  // Empty: its workers have succeeded. `cause`: as Event's.
  void round_stops(const std::string& reason, const std::string& cause = "");
  void on_workers(const WorkerNews& news);
  void on_started(const rendezvous::Assignment& place, const Worker& worker) override;
  void on_ended(const rendezvous::Assignment& place, const Worker& worker, bool stopping) override;
  void on_signal(int signal, SignalMeaning meaning);
  void at_limit(const std::string& limit);
  void on_hang(const rendezvous::Assignment& place, const HungRank& rank);
  void warned(const std::string& text);
  // `leads`: this node decides for the job.
  void job_ends(const rendezvous::Outcome& outcome, bool leads);
  // The last of them; `over` is called, once, when nothing is waited for any more: perhaps at once.
  void finish(int exit_code, std::function<void()> over);
  void give_up();

 private:
  [[nodiscard]] bool on() const { return log_ || hooks_ || remembers_; }
  void tell(events::Event event, bool leads = false);
  void tell(events::Kind kind, const std::string& reason);
  void store_is_there();
  [[nodiscard]] std::int64_t run_time() const;

  const Options& options_;
  const bool remembers_;
  const GpuLedger* gpus_ = nullptr;
  EventMemory memory_;
  std::optional<EventLog> log_;
  std::optional<EventHooks> hooks_;
  events::Event place_;  // what every event says: where it happens
  const Clock::time_point begun_;
  Clock::time_point round_begun_;
  bool in_round_ = false;
  bool round_stops_ = false;  // was told
  bool hosting_ = false;
  std::string store_;  // empty: where the options say
  bool store_lost_ = false;
};

}  // namespace drun::launcher
