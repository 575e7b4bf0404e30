// --metrics-file: the job's metrics for the textfile collector of Prometheus's node_exporter, where
// no port may be open. The file is replaced as a whole, in a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <string>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "launcher/report/outcome_report.hpp"
#include "launcher/views/job_watch.hpp"
#include "rendezvous/types.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's.
class MetricsFile {
 public:
  static constexpr std::chrono::milliseconds kPeriod{10'000};
  static constexpr rendezvous::WatchId kWatch = JobWatch::kWatch - 1;

  // `own` is called from the loop. The node of group rank 0 tells of the whole job, which all
  // the others would only repeat, at a price that grows with their square; each of its own agent.
  MetricsFile(asio::io_context& io, std::string path, const std::string& run_id,
              std::function<status::AgentStatus()> own);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void open();
  // The workers of a round have been started: this agent has a place.
  void on_start() { write(); }
  // Writes no more, and lets the loop end.
  void close();

  // As JobWatch's.
  void set_link(rendezvous::KeyValue* link) { watch_.set_link(link); }
  bool on_event(const rendezvous::KeyValueEvent& event);

  // How the job ended (null: it goes on without this node), to be written after all else; no more
  // is written from here on.
  [[nodiscard]] WriteFile last(const rendezvous::Outcome* outcome);
  // Warns of what went wrong, once; empty: nothing did.
  void tell(const std::string& error);

 private:
  void write();
  [[nodiscard]] std::function<std::string()> text(
      const rendezvous::Outcome* outcome = nullptr) const;

  const std::string path_;
  const std::function<status::AgentStatus()> own_;
  JobWatch watch_;
  FileDesk desk_;
  DeadlineTimer timer_;
  std::shared_future<void> writing_;
  bool tells_of_job_ = false;  // its node had group rank 0 when it last had a place
  bool knew_ = false;          // what the store says of the job
  bool busy_ = false;
  bool ended_ = false;
  std::string last_error_;
};

}  // namespace drun::launcher
