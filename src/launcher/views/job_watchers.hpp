// What looks at the whole job for the user, as far as flags ask for it: --status-listen,
// --metrics-file, --summary. Without them it does nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/job_stacks/page_stacks.hpp"
#include "launcher/options/options.hpp"
#include "launcher/telling/event_memory.hpp"
#include "launcher/views/metrics_file.hpp"
#include "launcher/views/status_page.hpp"
#include "launcher/views/usage_summary.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/key_value.hpp"
#include "rendezvous/types.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's.
class JobWatchers {
 public:
  // The references must outlive this; `own` and `stacks` are called from the loop, not before
  // open().
  JobWatchers(asio::io_context& io, const Options& options, const std::string& host_name,
              const WorkerGroup& group, const GpuLedger& gpus, const EventMemory& events,
              const std::function<status::AgentStatus()>& own, const PageStacks::Take& stacks);

  void open();
  // This agent has this outcome.
  void tell_end(const rendezvous::Outcome& outcome);
  // Lets the loop end.
  void close();

  // As JobWatch's: which link to the store there is; whether an event is nobody else's business.
  void set_link(rendezvous::KeyValue* link);
  [[nodiscard]] bool on_event(const rendezvous::KeyValueEvent& event);
  // Before the rendezvous hears of it.
  void on_workers(const GroupNews& news);

  // Null: not asked for.
  [[nodiscard]] UsageSummary* summary() { return summary_ ? &*summary_ : nullptr; }
  [[nodiscard]] MetricsFile* metrics_file() { return file_ ? &*file_ : nullptr; }

 private:
  std::optional<StatusPage> page_;
  std::optional<MetricsFile> file_;
  std::optional<UsageSummary> summary_;
};

}  // namespace drun::launcher
