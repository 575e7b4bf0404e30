#include "launcher/workers/worker_states.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/duration_text.hpp"
#include "base/number_ranges.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kDescribedEach = 8;  // workers with a line of their own

using std::chrono::milliseconds;

std::string time_since(Worker::Time since, Worker::Time now) {
  return describe_duration(std::chrono::duration_cast<milliseconds>(now - since).count());
}

// ", silent for 2.1 s"; `least`: "at least " if that is so.
std::string silence_of(std::optional<Worker::Time> last, const char* least, Worker::Time now) {
  if (!last) return "";
  if (*last == Worker::Time::min()) return ", no output";
  return std::string(", silent for ") + least + time_since(*last, now);
}

std::string state_of(const Worker& worker) {
  return worker.stage == Worker::Stage::Ended ? worker.cause : "not started";
}

// Of running workers, who has not failed: the time of each one's last output, or of its start if it
// has not printed.
struct LastOutput {
  Worker::Time time;
  bool printed = false;
};
using LastOutputs = std::map<int, LastOutput>;

LastOutputs last_outputs(const Workers& workers, int first_rank, const LastOutputOf& last_output) {
  LastOutputs last;
  for (const auto& [id, worker] : workers) {
    if (worker.stage != Worker::Stage::Running || worker.condemned) continue;
    if (const auto printed = last_output(id))
      last.emplace(first_rank + worker.local_rank,
                   LastOutput{std::max(*printed, worker.started), *printed != Worker::Time::min()});
  }
  return last;
}

constexpr milliseconds kWorthALine{1'000};

struct Silence {
  std::vector<int> ranks;
  std::string words;
};

// The few that stand out: a hang, if the others go on, or wait for them.
std::optional<Silence> longest_silence(const LastOutputs& last, Worker::Time now) {
  if (last.size() < 2) return std::nullopt;
  const auto by_time = [](const auto& a, const auto& b) { return a.second.time < b.second.time; };
  const auto [longest, shortest] = std::minmax_element(last.begin(), last.end(), by_time);
  const Worker::Time first = longest->second.time;
  if (now - first < 2 * (now - shortest->second.time) + kWorthALine) return std::nullopt;
  std::vector<int> ranks;
  Worker::Time latest = first;
  bool printed = false;
  for (const auto& [rank, output] : last) {
    if (output.time > first + kWorthALine) continue;
    ranks.push_back(rank);
    latest = std::max(latest, output.time);
    printed |= output.printed;
  }
  // Of ranks that have never printed fewer than half stand out: some print for others as well.
  if (ranks.size() * 2 > last.size() - (printed ? 0 : 1)) return std::nullopt;
  std::string words = std::string("silent the longest, for ") +
                      (ranks.size() > 1 ? "at least " : "") + time_since(latest, now);
  return Silence{std::move(ranks), std::move(words)};
}

// One line for each state; running workers share one, which says "for at least" and the time of the
// latest.
std::vector<RankState> describe_by_state(const Workers& workers, int first_rank,
                                         const LastOutputOf& last_output, Worker::Time now) {
  Worker::Time latest{};
  for (const auto& [id, worker] : workers)
    if (worker.stage == Worker::Stage::Running) latest = std::max(latest, worker.started);
  const LastOutputs last = last_outputs(workers, first_rank, last_output);
  const std::string running = "running for at least " + time_since(latest, now);
  std::optional<Worker::Time> last_of_all;
  for (const auto& [id, worker] : workers)
    if (worker.stage == Worker::Stage::Running)
      last_of_all = std::max(last_of_all, last_output(id));
  std::map<std::string, std::vector<int>> ranks_of;
  for (const auto& [id, worker] : workers) {
    const int rank = first_rank + worker.local_rank;
    const bool runs = worker.stage == Worker::Stage::Running;
    auto printed = last_output(id);
    if (printed && *printed != Worker::Time::min()) printed = last_of_all;
    ranks_of[runs ? running + silence_of(printed, "at least ", now) : state_of(worker)].push_back(
        rank);
  }
  std::vector<RankState> lines;
  for (const auto& [state, ranks] : ranks_of)
    lines.push_back({ranks_text(ranks) + ": " + state});
  if (const auto silence = longest_silence(last, now))
    lines.push_back({ranks_text(silence->ranks) + ": " + silence->words, true});
  return lines;
}

// The shortest of all that were stopped.
std::optional<milliseconds> silence_of_all(const Workers& workers) {
  std::optional<milliseconds> shortest;
  for (const auto& [id, worker] : workers) {
    if (!worker.stopped || worker.pid == 0) continue;
    if (worker.silence.value_or(milliseconds(0)) < kWorthALine) return std::nullopt;
    shortest = std::min(shortest.value_or(milliseconds::max()), *worker.silence);
  }
  return shortest;
}

}  // namespace

std::vector<RankState> describe_workers(const Workers& workers, int first_rank,
                                        const LastOutputOf& last_output, Worker::Time now) {
  if (workers.size() > kDescribedEach)
    return describe_by_state(workers, first_rank, last_output, now);
  const auto silence = longest_silence(last_outputs(workers, first_rank, last_output), now);
  const auto stands_out = [&](int rank) {
    return silence && std::count(silence->ranks.begin(), silence->ranks.end(), rank) > 0;
  };
  std::vector<RankState> lines;
  for (const auto& [id, worker] : workers) {
    const int number = first_rank + worker.local_rank;
    const std::string rank = "rank " + std::to_string(number);
    if (worker.stage != Worker::Stage::Running) {
      lines.push_back({rank + ": " + state_of(worker)});
      continue;
    }
    auto last = last_output(id);
    if (last && *last != Worker::Time::min()) last = std::max(*last, worker.started);
    lines.push_back({rank + " (pid " + std::to_string(worker.pid) + "): running for " +
                         time_since(worker.started, now) + silence_of(last, "", now),
                     stands_out(number)});
  }
  return lines;
}

std::string describe_silence(const Workers& workers, int first_rank,
                             const LastOutputOf& last_output, Worker::Time now) {
  const auto silence = longest_silence(last_outputs(workers, first_rank, last_output), now);
  return silence ? ranks_text(silence->ranks) + " " + silence->words : "";
}

void find_silent(StoppedRanks& stopped, const Workers& workers, int first_rank) {
  stopped.all_silent = silence_of_all(workers);
  stopped.few = stopped.running.size() * 2 <= workers.size();
  std::map<int, milliseconds> all;      // by rank
  std::map<int, milliseconds> printed;  // of these, those that had written something
  milliseconds shortest = milliseconds::max();
  for (const auto& [id, worker] : workers) {
    if (!worker.stopped || !worker.silence) continue;
    const int rank = first_rank + worker.local_rank;
    all.emplace(rank, *worker.silence);
    if (!worker.printed) continue;
    printed.emplace(rank, *worker.silence);
    shortest = std::min(shortest, *worker.silence);
  }
  const auto take = [](const std::map<int, milliseconds>& from, milliseconds least,
                       std::vector<int>& ranks, std::string& silent_for) {
    milliseconds known = milliseconds::max();
    for (const auto& [rank, silence] : from) {
      if (silence < least) continue;
      ranks.push_back(rank);
      known = std::min(known, silence);
    }
    if (!ranks.empty()) silent_for = describe_duration(known.count());
  };
  if (stopped.job_ranks > 0) take(all, kWorthALine, stopped.quiet, stopped.quiet_for);
  if (stopped.few) return take(all, kWorthALine, stopped.silent, stopped.silent_for);
  if (printed.empty()) return;
  take(printed, 2 * shortest + kWorthALine, stopped.silent, stopped.silent_for);
  if (stopped.silent.size() * 2 <= printed.size()) return;
  stopped.silent.clear();
  stopped.silent_for.clear();
}

}  // namespace drun::launcher
