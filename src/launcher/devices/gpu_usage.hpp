// What the workers have of GPUs, as NVIDIA's library says. The library leaves threads behind, and a
// sick driver may never answer: so drun starts itself anew for that, with kGpuUsageFlag as its only
// argument. This helper stays: the driver tells how busy a GPU was since it was asked before, and
// may take a second to begin with.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/devices/nvml_processes.hpp"

namespace drun::launcher {

inline constexpr std::string_view kGpuUsageFlag = "--tell-gpu-usage";

// Of a worker and all processes below it, on all GPUs.
struct WorkerOnGpus {
  pid_t worker = 0;
  std::int64_t memory_kib = -1;  // now; -1: not known
  int percent = -1;              // the mean of the GPUs that it is on; -1: not known

  bool operator==(const WorkerOnGpus&) const = default;
};
struct GpuSample {
  // False: no library, no driver, or one that does not tell; nor will it later.
  bool can_tell = false;
  std::vector<WorkerOnGpus> workers;  // those that are on a GPU

  bool operator==(const GpuSample&) const = default;
};

// What the helper is asked, a line: of which workers, in this process's pid namespace.
[[nodiscard]] std::string encode_gpu_question(const std::vector<pid_t>& workers);
// What it answers, a line for each. After one that cannot tell it ends.
[[nodiscard]] std::string encode(const GpuSample& sample);
[[nodiscard]] std::optional<GpuSample> decode_gpu_sample(std::string_view text);

// Whose the processes are. `parent_of`: 0 if the process is gone.
[[nodiscard]] std::vector<WorkerOnGpus> by_worker(const std::vector<GpuProcess>& processes,
                                                  const std::vector<pid_t>& workers,
                                                  const std::function<pid_t(pid_t)>& parent_of);

// Answers what comes from standard input until its end. The exit code.
[[nodiscard]] int run_gpu_usage_helper();

}  // namespace drun::launcher
