#include "launcher/devices/nvml_processes.hpp"

#include <algorithm>
#include <cstddef>

#include "base/loaded_library.hpp"
#include "base/process_files.hpp"

namespace drun::launcher {
namespace {

constexpr std::size_t kMostProcesses = 4'096;  // on a GPU
constexpr int kNotFound = 6;                   // NVML_ERROR_NOT_FOUND: no sample is as young
constexpr auto kMemoryNotKnown = ~0ULL;        // NVML_VALUE_NOT_AVAILABLE

// NVML counts processes as the host does: in another pid namespace its numbers are strangers'. The
// kernel's first one has this name, everywhere.
bool counts_as_the_host() {
  return link_target("/proc/self/ns/pid") == "pid:[4026531836]";
}

}  // namespace

std::optional<NvmlProcesses> NvmlProcesses::load() {
  if (!counts_as_the_host()) return std::nullopt;
  NvmlProcesses nvml;
  LoadedLibrary file({"libnvidia-ml.so.1", "the processes of GPUs", "2", "libnvidia-ml1"});
  file.need("nvmlInit_v2", nvml.init_);
  file.need("nvmlDeviceGetCount_v2", nvml.count_);
  file.need("nvmlDeviceGetHandleByIndex_v2", nvml.by_index_);
  // Drivers before 450 have other records.
  file.find("nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes_);
  if (nvml.processes_ == nullptr)
    file.need("nvmlDeviceGetComputeRunningProcesses_v2", nvml.processes_);
  file.find("nvmlDeviceGetProcessUtilization", nvml.samples_);
  if (!file.status() || nvml.init_() != 0) return std::nullopt;
  return nvml;
}

std::optional<std::vector<GpuProcess>> NvmlProcesses::list() const {
  unsigned gpus = 0;
  if (count_(&gpus) != 0) return std::nullopt;
  bool told = false;
  std::vector<GpuProcess> result;
  std::vector<ProcessInfo> list(kMostProcesses);
  for (unsigned i = 0; i < gpus; ++i) {
    Gpu gpu = nullptr;
    auto count = static_cast<unsigned>(list.size());
    if (by_index_(i, &gpu) != 0 || processes_(gpu, &count, list.data()) != 0) continue;
    told = true;
    for (unsigned k = 0; k < std::min<std::size_t>(count, list.size()); ++k) {
      GpuProcess process{static_cast<int>(i), static_cast<pid_t>(list[k].pid)};
      if (list[k].memory != kMemoryNotKnown)
        process.memory_kib = static_cast<std::int64_t>(list[k].memory / 1'024);
      result.push_back(process);
    }
  }
  return told ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<std::map<pid_t, int>> NvmlProcesses::busy(int gpu, std::uint64_t& since_us) const {
  Gpu handle = nullptr;
  if (samples_ == nullptr || by_index_(static_cast<unsigned>(gpu), &handle) != 0)
    return std::nullopt;
  std::vector<Sample> list(kMostProcesses);
  auto count = static_cast<unsigned>(list.size());
  const int answer = samples_(handle, list.data(), &count, since_us);
  if (answer == kNotFound) return std::map<pid_t, int>();
  if (answer != 0) return std::nullopt;
  struct Sum {
    unsigned percent = 0;
    unsigned samples = 0;
  };
  std::map<pid_t, Sum> sums;
  const std::uint64_t since = since_us;
  for (unsigned k = 0; k < std::min<std::size_t>(count, list.size()); ++k) {
    const Sample& sample = list[k];
    // Drivers give old ones and absurd ones, too.
    if (sample.time_us <= since || sample.sm > 100) continue;
    since_us = std::max<std::uint64_t>(since_us, sample.time_us);
    Sum& sum = sums[static_cast<pid_t>(sample.pid)];
    sum.percent += sample.sm;
    ++sum.samples;
  }
  std::map<pid_t, int> result;
  for (const auto& [pid, sum] : sums)
    result.emplace(pid, static_cast<int>(sum.percent / sum.samples));
  return result;
}

}  // namespace drun::launcher
