// How many CPUs and GPUs this process can really use. The counting is pure: what the system says
// comes in through Machine. Only this_machines_devices() reads the real one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/options.hpp"

namespace drun::launcher {

// The files of a system, or a made-up set of them.
struct FileSource {
  std::function<std::optional<std::string>(const std::string& path)> read;     // nullopt: cannot
  std::function<std::vector<std::string>(const std::string& directory)> list;  // names; {}: cannot
};

struct NvidiaGpus {
  std::vector<std::string> uuids;  // "GPU-...", one per GPU; "" where it is unknown
};

struct Machine {
  int affinity = 1;  // CPUs that the scheduler may use for this process
  FileSource files;
  std::function<std::optional<NvidiaGpus>()> nvidia;  // nullopt: no driver
};

[[nodiscard]] Machine this_machines_devices();

// What --nproc-per-node cpu|gpu|xpu|auto means for a process with this environment. Fails where
// there is none; the error says why.
[[nodiscard]] Result<int> count_devices(DeviceKind kind,
                                        const std::vector<std::string>& environment,
                                        const Machine& machine);

// ---- CPUs ----

// The affinity mask and the CPU quota of the process's cgroups (version 1 and 2), rounded down, at
// least 1.
[[nodiscard]] int usable_cpus(const Machine& machine);

// ---- GPUs ----

// Which of the GPUs CUDA_VISIBLE_DEVICES leaves, in its order, as torch counts them: unset = all;
// numbers as strtoul reads them, up to the first that is negative, no number or out of range;
// nothing at all when one is repeated; or UUIDs, which may be shortened.
[[nodiscard]] std::vector<int> visible_nvidia(const NvidiaGpus& gpus, const char* mask);
// AMD GPUs of the kernel's KFD topology, after ROCR_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and
// CUDA_VISIBLE_DEVICES.
[[nodiscard]] int visible_rocm(const FileSource& files,
                               const std::vector<std::string>& environment);
// Intel GPUs of the i915 and xe drivers, after ZE_AFFINITY_MASK.
[[nodiscard]] int visible_intel(const FileSource& files,
                                const std::vector<std::string>& environment);

}  // namespace drun::launcher
