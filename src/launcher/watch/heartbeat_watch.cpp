#include "launcher/watch/heartbeat_watch.hpp"

#include <utility>

#include "base/exit_codes.hpp"
#include "base/file_worker.hpp"
#include "base/log.hpp"
#include "launcher/output/log_layout.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// A file system without an answer is asked again after this time: a thread hangs there meanwhile.
constexpr std::chrono::minutes kAskAgain{5};

struct Watched {
  hang::Heartbeats::Seen seen;
  std::string file;
};

}  // namespace

HeartbeatWatch::HeartbeatWatch(asio::io_context& io, const hang::HeartbeatLimits& limits,
                               const WorkerGroup& group, Calls calls)
    : group_(group), calls_(std::move(calls)), heartbeats_(limits), timer_(io, [this] { look(); }) {
  if (limits.any()) desk_.emplace(io, [] {});
}

void HeartbeatWatch::start() {
  if (desk_) timer_.set(Clock::now() + heartbeats_.interval());
}

void HeartbeatWatch::cancel() {
  timer_.set(std::nullopt);
  if (desk_) desk_->cancel();
}

void HeartbeatWatch::look() {
  std::vector<Watched> workers;
  if (group_.running()) {
    for (const auto& [id, worker] : group_.workers())
      if (worker.stage == Worker::Stage::Running)
        workers.push_back({{id, worker.started, std::nullopt}, heartbeat_file(worker.error_file)});
  }
  desk_->ask<Looked>(
      kFilesLimit,
      [workers = std::move(workers)] {
        Looked looked;
        for (const Watched& each : workers) {
          about_to("read " + each.file);
          looked.push_back(each.seen);
          looked.back().heartbeat = hang::read_heartbeat(each.file);
        }
        return looked;
      },
      [this](Result<Looked> looked) {
        if (looked) {
          timer_.set(Clock::now() + heartbeats_.interval());
          return on_looked(*looked);
        }
        log::warning("heartbeats are not seen: {}", looked.error().what());
        timer_.set(Clock::now() + kAskAgain);
      });
}

void HeartbeatWatch::on_looked(const Looked& looked) {
  std::vector<HungRank> hung;
  for (auto& late : heartbeats_.on_look(looked, Clock::now())) {
    const auto worker = group_.workers().find(late.worker);
    if (worker == group_.workers().end()) continue;
    RankFault fault;
    fault.exit_code = kTimeLimit;
    fault.cause = std::move(late.cause);
    fault.hangs = true;
    hung.push_back({worker->second.local_rank, worker->second.pid, std::move(fault)});
  }
  calls_.looked();
  if (!hung.empty()) calls_.late(hung);
}

std::optional<status::RankBeat> HeartbeatWatch::behind() const {
  const auto behind = heartbeats_.behind();
  if (!behind || !group_.running()) return std::nullopt;
  const auto worker = group_.workers().find(behind->worker);
  if (worker == group_.workers().end()) return std::nullopt;
  return status::RankBeat{group_.assignment().first_rank + worker->second.local_rank,
                          behind->step.value_or(-1), behind->quiet.count()};
}

}  // namespace drun::launcher
