#include "launcher/workers/worker_states.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/number_ranges.hpp"
#include "launcher/report/failure_report.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kDescribedEach = 8;  // workers with a line of their own

std::string state_of(const Worker& worker, Worker::Time running_since, const char* least,
                     Worker::Time now) {
  if (worker.stage == Worker::Stage::Ended) return worker.cause;
  if (worker.stage == Worker::Stage::Requested) return "not started";
  const auto running = std::chrono::duration_cast<std::chrono::milliseconds>(now - running_since);
  return std::string("running for ") + least + describe_duration(running.count());
}

// One line for each state; running workers share one, which says "for at least" and the time of the
// latest.
std::vector<std::string> describe_by_state(const Workers& workers, int first_rank,
                                           Worker::Time now) {
  Worker::Time latest{};
  for (const auto& [id, worker] : workers)
    if (worker.stage == Worker::Stage::Running) latest = std::max(latest, worker.started);
  std::map<std::string, std::vector<int>> ranks_of;
  for (const auto& [id, worker] : workers)
    ranks_of[state_of(worker, latest, "at least ", now)].push_back(first_rank + worker.local_rank);
  std::vector<std::string> lines;
  for (const auto& [state, ranks] : ranks_of)
    lines.push_back((ranks.size() == 1 ? "rank " : "ranks ") + to_string(ranges_of(ranks)) + ": " +
                    state);
  return lines;
}

}  // namespace

std::vector<std::string> describe_workers(const Workers& workers, int first_rank,
                                          Worker::Time now) {
  if (workers.size() > kDescribedEach) return describe_by_state(workers, first_rank, now);
  std::vector<std::string> lines;
  for (const auto& [id, worker] : workers) {
    const bool running = worker.stage == Worker::Stage::Running;
    const std::string pid = running ? " (pid " + std::to_string(worker.pid) + ")" : "";
    lines.push_back("rank " + std::to_string(first_rank + worker.local_rank) + pid + ": " +
                    state_of(worker, worker.started, "", now));
  }
  return lines;
}

}  // namespace drun::launcher
