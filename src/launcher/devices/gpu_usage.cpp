#include "launcher/devices/gpu_usage.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "base/poll_until.hpp"
#include "base/process_files.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/standard_streams.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kLongestUsageQuestion = 1U << 20;
// Before the first question: how far back the driver's samples count.
constexpr std::chrono::microseconds kFirstPeriod{1'000'000};
// Deeper below a worker nobody is looked for; a chain that is read while it changes may be a ring.
constexpr int kDeepest = 1'000;

pid_t parent_in_proc(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  if (!stat) return 0;
  std::string_view rest = stat_from_state(*stat);
  take_until(rest, ' ');
  return whole_number<pid_t>(take_until(rest, ' ')).value_or(0);
}

// 0: no worker's.
pid_t worker_of(pid_t pid, const std::set<pid_t>& workers,
                const std::function<pid_t(pid_t)>& parent_of) {
  for (int depth = 0; pid > 1 && depth < kDeepest; ++depth) {
    if (workers.contains(pid)) return pid;
    pid = parent_of(pid);
  }
  return 0;
}

// What it says of a worker, as it is summed up.
struct Share {
  std::int64_t memory_kib = -1;
  std::map<int, std::map<pid_t, int>> busy;  // by GPU and process
};

// Processes that share a GPU are busy in turn.
int mean_percent(const Share& share) {
  int sum = 0;
  int gpus = 0;
  for (const auto& [gpu, processes] : share.busy) {
    int percent = 0;
    for (const auto& [pid, each] : processes)
      percent += each;
    sum += std::min(percent, 100);
    ++gpus;
  }
  return gpus > 0 ? (sum + gpus / 2) / gpus : -1;
}

// Takes samples, each since the last one.
class Sampler {
 public:
  explicit Sampler(const NvmlProcesses& nvml) : nvml_(nvml) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    begun_us_ = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(now - kFirstPeriod).count());
  }

  GpuSample take(const std::vector<pid_t>& workers) {
    auto processes = nvml_.list();
    if (!processes) return {};
    std::map<int, std::optional<std::map<pid_t, int>>> busy;
    for (GpuProcess& process : *processes) {
      auto found = busy.find(process.gpu);
      if (found == busy.end()) found = busy.emplace(process.gpu, busy_on(process.gpu)).first;
      if (!found->second) continue;
      const auto share = found->second->find(process.pid);
      process.percent = share == found->second->end() ? 0 : share->second;
    }
    return {true, by_worker(*processes, workers, parent_in_proc)};
  }

 private:
  std::optional<std::map<pid_t, int>> busy_on(int gpu) {
    return nvml_.busy(gpu, since_us_.try_emplace(gpu, begun_us_).first->second);
  }

  const NvmlProcesses& nvml_;
  std::uint64_t begun_us_;
  std::map<int, std::uint64_t> since_us_;  // by GPU: the last sample that was heard of
};

std::vector<pid_t> read_question(std::string_view line) {
  std::vector<pid_t> workers;
  while (!line.empty())
    if (const auto pid = whole_number<pid_t>(take_until(line, ' '))) workers.push_back(*pid);
  return workers;
}

}  // namespace

std::vector<WorkerOnGpus> by_worker(const std::vector<GpuProcess>& processes,
                                    const std::vector<pid_t>& workers,
                                    const std::function<pid_t(pid_t)>& parent_of) {
  const std::set<pid_t> wanted(workers.begin(), workers.end());
  std::map<pid_t, Share> shares;
  for (const GpuProcess& process : processes) {
    const pid_t worker = worker_of(process.pid, wanted, parent_of);
    if (worker == 0) continue;
    Share& share = shares[worker];
    if (process.memory_kib >= 0)
      share.memory_kib = std::max<std::int64_t>(share.memory_kib, 0) + process.memory_kib;
    if (process.percent >= 0) share.busy[process.gpu][process.pid] = process.percent;
  }
  std::vector<WorkerOnGpus> result;
  for (const auto& [worker, share] : shares)
    result.push_back({worker, share.memory_kib, mean_percent(share)});
  return result;
}

std::string encode_gpu_question(const std::vector<pid_t>& workers) {
  std::string text;
  for (const pid_t pid : workers)
    text += (text.empty() ? "" : " ") + std::to_string(pid);
  return text + "\n";
}

std::string encode(const GpuSample& sample) {
  if (!sample.can_tell) return "unknown\n";
  std::string text = "sample";
  for (const WorkerOnGpus& each : sample.workers)
    text += " " + std::to_string(each.worker) + ":" + std::to_string(each.memory_kib) + ":" +
            std::to_string(each.percent);
  return text + "\n";
}

std::optional<GpuSample> decode_gpu_sample(std::string_view text) {
  if (text == "unknown\n") return GpuSample();
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  if (take_until(text, ' ') != "sample") return std::nullopt;
  GpuSample sample{true, {}};
  while (!text.empty()) {
    std::string_view word = take_until(text, ' ');
    const auto worker = whole_number<pid_t>(take_until(word, ':'));
    const auto memory = whole_number<std::int64_t>(take_until(word, ':'));
    const auto percent = whole_number<int>(word);
    if (!worker || *worker <= 0 || !memory || *memory < -1 || !percent || *percent < -1 ||
        *percent > 100)
      return std::nullopt;
    sample.workers.push_back({*worker, *memory, *percent});
  }
  return sample;
}

int run_gpu_usage_helper() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::optional<NvmlProcesses> nvml;
  std::optional<Sampler> sampler;
  for (;;) {
    const std::string line = read_standard_input_line(kLongestUsageQuestion, kNoDeadline);
    std::string_view question(line);
    if (!question.ends_with('\n')) return 0;
    question.remove_suffix(1);
    if (!nvml && (nvml = NvmlProcesses::load())) sampler.emplace(*nvml);
    const GpuSample sample = sampler ? sampler->take(read_question(question)) : GpuSample();
    if (!write_standard_output(encode(sample))) return 1;
    if (!sample.can_tell) return 0;
  }
}

}  // namespace drun::launcher
