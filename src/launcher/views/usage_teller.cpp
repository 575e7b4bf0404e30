#include "launcher/views/usage_teller.hpp"

#include <sys/types.h>

#include <utility>
#include <vector>

#include "base/file_worker.hpp"
#include "jobs/usage.hpp"
#include "launcher/process/usage.hpp"
#include "launcher/views/rank_usage.hpp"

namespace drun::launcher {
namespace {

struct Running {
  int rank = 0;
  pid_t pid = 0;
  GpuUse gpus;
};

// Those that still run; one that ends meanwhile is left out.
std::string with_running(jobs::NodeUsage usage, const std::vector<Running>& running) {
  for (const Running& each : running)
    if (const auto used = process::usage_with_descendants(each.pid))
      usage.ranks.push_back(usage_of_rank(each.rank, *used, each.gpus));
  return encode(usage);
}

}  // namespace

UsageTeller::UsageTeller(asio::io_context& io, std::string host,
                         std::function<const WorkerGroup&()> group, const GpuLedger& gpus)
    : io_(io), host_(std::move(host)), group_(std::move(group)), gpus_(gpus) {}

void UsageTeller::ask(Say say) {
  const WorkerGroup& group = group_();
  jobs::NodeUsage usage;
  std::vector<Running> running;
  if (group.has_workers()) {
    const rendezvous::Assignment& place = group.assignment();
    usage = {place.round, place.group_rank, host_, {}};
    for (const auto& [id, worker] : group.workers()) {
      const int rank = place.first_rank + worker.local_rank;
      const GpuUse gpus = gpus_.of(place.round, worker.pid);
      if (worker.stage == Worker::Stage::Running)
        running.push_back({rank, worker.pid, gpus});
      else if (worker.pid != 0 && worker.usage != process::Usage())  // else nobody could tell
        usage.ranks.push_back(usage_of_rank(rank, worker.usage, gpus));
    }
  }
  if (!thread_) thread_.emplace(io_, [] {});
  thread_->ask<std::string>(
      kFilesLimit,
      [usage = std::move(usage), running = std::move(running)] {
        return usage.round > 0 ? with_running(usage, running) : std::string();
      },
      [say = std::move(say)](const Result<std::string>& text) { say(text ? *text : ""); });
}

void UsageTeller::cancel() {
  if (thread_) thread_->cancel();
}

}  // namespace drun::launcher
