// Tells drunctl status on this host what the workers of this node have used so far.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "base/file_desk.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/workers/worker_group.hpp"

namespace drun::launcher {

// One thread: the loop's, which it never blocks. Until somebody asks it has no thread of its own.
class UsageTeller {
 public:
  // Called from the loop, once, later, unless cancel() forgets it.
  using Say = std::function<void(const std::string& text)>;

  // `host`: this node's name. What `group` gives is looked at from inside ask(). `gpus` must
  // outlive this.
  UsageTeller(asio::io_context& io, std::string host, std::function<const WorkerGroup&()> group,
              const GpuLedger& gpus);

  // A jobs::NodeUsage, encoded; empty: this node has no place in a round.
  void ask(Say say);
  // Nobody is told anything any more.
  void cancel();

 private:
  asio::io_context& io_;
  const std::string host_;
  const std::function<const WorkerGroup&()> group_;
  const GpuLedger& gpus_;
  std::optional<FileDesk> thread_;
};

}  // namespace drun::launcher
