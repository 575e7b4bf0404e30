#include "launcher/watch/heartbeat_watch.hpp"

#include <algorithm>
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

// Others take no negative step for one.
std::int64_t told_step(const std::optional<std::int64_t>& step) {
  return std::max<std::int64_t>(step.value_or(-1), -1);
}

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
  auto all = heartbeats_.on_look(looked, Clock::now());
  std::map<std::string, int> alike;  // by cause
  for (const auto& late : all)
    ++alike[late.cause];
  std::vector<HungRank> hung;
  for (auto& late : all) {
    const auto worker = group_.workers().find(late.worker);
    if (worker == group_.workers().end()) continue;
    RankFault fault;
    fault.exit_code = kTimeLimit;
    fault.cause = std::move(late.cause);
    fault.hangs = true;
    fault.clue.alike = alike.at(fault.cause);
    fault.clue.step = late.step;
    // They may have given their last one a little later, and be looked at later.
    fault.clue.others_within = 2 * heartbeats_.interval() + rendezvous::kOthersTimeOut;
    hung.push_back({worker->second.local_rank, worker->second.pid, std::move(fault)});
  }
  calls_.looked();
  if (!hung.empty()) calls_.late(hung);
}

// Nullopt: it has ended since.
std::optional<int> HeartbeatWatch::rank_of(std::uint32_t worker) const {
  const auto found = group_.workers().find(worker);
  if (!group_.running() || found == group_.workers().end()) return std::nullopt;
  return group_.assignment().first_rank + found->second.local_rank;
}

std::optional<status::RankBeat> HeartbeatWatch::behind() const {
  const auto span = heartbeats_.span();
  const auto rank = span ? rank_of(span->behind.worker) : std::nullopt;
  if (!rank) return std::nullopt;
  const bool alone = span->behind.worker == span->ahead.worker;
  if (!alone && span->behind.step && span->behind.step == span->ahead.step) return std::nullopt;
  return status::RankBeat{*rank, told_step(span->behind.step), span->behind.quiet.count()};
}

std::optional<rendezvous::BeatDocument> HeartbeatWatch::note(std::int64_t now_ms) const {
  const auto span = heartbeats_.span();
  const auto rank = span ? rank_of(span->behind.worker) : std::nullopt;
  if (!rank) return std::nullopt;
  rendezvous::BeatDocument note;
  note.round = group_.round();
  note.rank = *rank;
  note.step = told_step(span->behind.step);
  note.time_ms = now_ms - span->behind.quiet.count();
  note.most_step = told_step(span->ahead.step);
  note.most_time_ms = now_ms - span->ahead.quiet.count();
  return note;
}

}  // namespace drun::launcher
