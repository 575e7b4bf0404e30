// The processes on NVIDIA's GPUs, as the driver's library lists them. For helpers, which are
// processes of their own: the library leaves threads behind, and a sick driver may never answer.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace drun::launcher {

struct GpuProcess {
  int gpu = 0;  // as nvidia-smi counts
  pid_t pid = 0;
  std::int64_t memory_kib = -1;  // -1: not known
  int percent = -1;              // how busy it kept the GPU; -1: not known

  bool operator==(const GpuProcess&) const = default;
};

class NvmlProcesses {
 public:
  // Nothing: no library, no driver, one that does not list processes, or numbers of another pid
  // namespace. Loads the library for good.
  [[nodiscard]] static std::optional<NvmlProcesses> load();

  // With nothing of how busy they are; one that has several slices of a GPU is there for each.
  // Nullopt: no GPU tells.
  [[nodiscard]] std::optional<std::vector<GpuProcess>> list() const;

  // For how much of the time each process ran something on this GPU, in percent, since `since_us`
  // (Unix time), which becomes that of the last sample. Who is not there ran nothing. Nullopt: the
  // driver does not tell, as for a GPU in slices.
  [[nodiscard]] std::optional<std::map<pid_t, int>> busy(int gpu, std::uint64_t& since_us) const;

 private:
  // The part of nvml.h that is used; every function returns 0 for success.
  using Gpu = void*;
  struct ProcessInfo {  // nvmlProcessInfo_v2_t
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance;
    unsigned compute_instance;
  };
  struct Sample {  // nvmlProcessUtilizationSample_t
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;  // percent
  };

  NvmlProcesses() = default;

  int (*init_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*by_index_)(unsigned, Gpu*) = nullptr;
  int (*processes_)(Gpu, unsigned* count, ProcessInfo*) = nullptr;
  // Null in drivers before 384.
  int (*samples_)(Gpu, Sample*, unsigned* count, unsigned long long since) = nullptr;
};

}  // namespace drun::launcher
