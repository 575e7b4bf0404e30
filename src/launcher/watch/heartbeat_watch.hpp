// Looks after the workers' heartbeats in the agent's loop, if there are limits for them. Their
// files are read in another thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <asio/io_context.hpp>

#include "base/deadline_timer.hpp"
#include "base/file_desk.hpp"
#include "hang/heartbeats.hpp"
#include "launcher/workers/hung_ranks.hpp"
#include "launcher/workers/worker_group.hpp"
#include "rendezvous/documents.hpp"
#include "status/agent_status.hpp"

namespace drun::launcher {

// One thread: the loop's.
class HeartbeatWatch {
 public:
  // Called from the loop.
  struct Calls {
    std::function<void(const std::vector<HungRank>&)> late;
    std::function<void()> looked;  // after each look
  };
  // `group` must outlive this.
  HeartbeatWatch(asio::io_context& io, const hang::HeartbeatLimits& limits,
                 const WorkerGroup& group, Calls calls);

  // Looks from now on; without limits it does nothing.
  void start();
  void cancel();
  // Of the workers that run, as the last look has found it; nullopt: none has given a heartbeat, or
  // all are at one step.
  [[nodiscard]] std::optional<status::RankBeat> behind() const;
  // Who is behind and who is ahead, for other nodes. `now_ms`: Unix milliseconds.
  [[nodiscard]] std::optional<rendezvous::BeatDocument> note(std::int64_t now_ms) const;

 private:
  using Looked = std::vector<hang::Heartbeats::Seen>;

  [[nodiscard]] std::optional<int> rank_of(std::uint32_t worker) const;
  void look();
  void on_looked(const Looked& looked);

  const WorkerGroup& group_;
  const Calls calls_;
  hang::Heartbeats heartbeats_;
  std::optional<FileDesk> desk_;  // nullopt: there are no limits
  DeadlineTimer timer_;
};

}  // namespace drun::launcher
