// --summary: at the end of a round each agent tells what its workers have used; the one of group
// rank 0 waits for what all have told, and makes a table of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "jobs/usage.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/key_value.hpp"

namespace drun::launcher {

// One thread: the loop's.
class UsageSummary {
 public:
  static constexpr rendezvous::WatchId kWatch = 0xFFFFFFFC;  // the participant counts from 1
  static constexpr rendezvous::RequestId kRequest = ~rendezvous::RequestId{0};
  // How long the end waits for other nodes. One that was lost tells nothing.
  static constexpr std::chrono::milliseconds kLimit{5'000};

  // `group` and `gpus` must outlive this.
  UsageSummary(asio::io_context& io, const std::string& run_id, std::string host,
               const WorkerGroup& group, const GpuLedger& gpus);
  UsageSummary(const UsageSummary&) = delete;
  UsageSummary& operator=(const UsageSummary&) = delete;

  // As JobWatch's, for the keys of the usage and what this wrote.
  void set_link(rendezvous::KeyValue* link);
  bool on_event(const rendezvous::KeyValueEvent& event);

  // Before the rendezvous hears of it: the job may be over then.
  void on_workers(const GroupNews& news);

  // Calls `done` with the lines, once all nodes of the last round have told or the limit is over;
  // at once and without any if this agent is not the one that tells.
  void at_end(std::function<void(std::vector<std::string>)> done);
  // Waits for nobody any more.
  void give_up() { finish(); }
  void close();

 private:
  [[nodiscard]] bool tells() const;
  [[nodiscard]] bool complete() const;
  void note(const rendezvous::Change& change);
  void write_own();
  void finish();

  const std::string prefix_;
  const std::string own_key_;
  const std::string host_;
  const WorkerGroup& group_;
  const GpuLedger& gpus_;
  DeadlineTimer timer_;
  rendezvous::KeyValue* link_ = nullptr;
  bool watching_ = false;
  int written_ = 0;                       // the round whose usage was told
  std::map<int, jobs::NodeUsage> nodes_;  // of the last round, by group rank
  std::function<void(std::vector<std::string>)> done_;
};

}  // namespace drun::launcher
