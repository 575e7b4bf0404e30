// WorkerGroup: what it tells of its workers, of their failures and of what a stop found.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "launcher/report/failure_report.hpp"
#include "launcher/workers/worker_group.hpp"
#include "launcher/workers/worker_states.hpp"

namespace drun::launcher {
namespace {

// For what failed workers leave in files; the other nodes wait for the report.
constexpr std::chrono::milliseconds kReadLimit{5'000};

}  // namespace

// Once a round: who runs at a second stop has survived the first.
void WorkerGroup::note_running(Time now) {
  if (state_ != State::Running || std::exchange(last_stop_.noted, true)) return;
  const auto last_output = [this](process::WorkerId id) { return output_.last_output(id); };
  for (auto& [id, worker] : workers_) {
    worker.stopped = worker.stage != Worker::Stage::Ended && !worker.condemned;
    worker.succeeded_before = !worker.stopped && worker.end.success();
    const auto last = last_output(id);
    if (!last) continue;
    worker.printed = *last != Time::min();
    worker.silence = std::chrono::duration_cast<std::chrono::milliseconds>(
        now - std::max(*last, worker.started));
  }
  last_stop_.silence = describe_silence(workers_, assignment_.first_rank, last_output, now);
}

FailedRound WorkerGroup::failed_round(const RoundFailures& failures) const {
  return {spec_, assignment_, host_, workers_, failures, failure_time_ms_, one_reason_};
}

void WorkerGroup::report_failure(GroupNews& news, Time now, bool complete) {
  if (failures_.take_report(now, complete)) {
    for (const auto id : failures_.others())
      workers_.at(id).stopped = false;  // the report tells of them
    report_ = Report{failures_, {}};
    read_remains();
  }
  if (!report_ || !report_->remains) return;
  news.failure = summarize(failed_round(report_->failures), *report_->remains, output_);
  report_.reset();
}

// Asks for what the failed workers left in files. If no answer comes, the report is made without.
void WorkerGroup::read_remains() {
  auto traces = traces_of(failed_round(report_->failures));
  if (traces.empty()) {
    report_->remains.emplace();
    return;
  }
  file_work_.ask<RemainsOf>(
      kReadLimit, [traces = std::move(traces)] { return find_remains(traces); },
      [this, start = starts_](Result<RemainsOf> found) {
        if (!report_ || start != starts_) return;
        if (!found) log::warning("{}; the report is made without it", found.error().what());
        report_->remains = found ? std::move(*found) : RemainsOf();
      });
}

bool WorkerGroup::has_input() const {
  if (idle() || !spec_.stdin_rank) return false;
  const int local_rank = *spec_.stdin_rank - assignment_.first_rank;
  return local_rank >= 0 && local_rank < spec_.nproc_per_node;
}

std::string WorkerGroup::error_file(const rendezvous::FailureSummary& failure) const {
  if (failure.group_rank != assignment_.group_rank) return {};
  for (const auto& [id, worker] : workers_)
    if (worker.local_rank == failure.local_rank && worker.pid == failure.pid)
      return worker.error_file;
  return {};
}

std::vector<RankState> WorkerGroup::describe(Time now) const {
  const auto last_output = [this](process::WorkerId id) { return output_.last_output(id); };
  return describe_workers(workers_, assignment_.first_rank, last_output, now);
}

StoppedRanks WorkerGroup::ranks_at_end() const {
  return last_stop_.over ? StoppedRanks() : stopped_ranks();
}

StoppedRanks WorkerGroup::stopped_ranks() const {
  StoppedRanks ranks;
  ranks.at_once = last_stop_.hurried;
  ranks.silence = last_stop_.silence;
  if (assignment_.group_world_size > 1) {
    ranks.host = host_;
    ranks.job_ranks = assignment_.world_size;
  }
  ranks.expected = assignment_.world_size == 1 || not_started_ > 0;
  std::uint32_t killed = 0;
  for (const auto& [id, worker] : workers_) {
    if (worker.killed) ++killed;
    if (worker.succeeded_before)
      ranks.succeeded.push_back(assignment_.first_rank + worker.local_rank);
    if (!worker.stopped || worker.pid == 0) continue;
    ranks.running.push_back(assignment_.first_rank + worker.local_rank);
    ranks.silences.push_back(worker.silence);
    if (worker.killed) ranks.killed.push_back(ranks.running.back());
  }
  find_silent(ranks, workers_, assignment_.first_rank);
  ranks.others_killed = last_stop_.processes_killed - std::min(last_stop_.processes_killed, killed);
  return ranks;
}

}  // namespace drun::launcher
