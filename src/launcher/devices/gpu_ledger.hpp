// What the workers of a round have had of GPUs, by the samples that were taken of it. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>

#include "launcher/devices/gpu_usage.hpp"

namespace drun::launcher {

// Of a worker and all processes below it. What no sample told is not there.
struct GpuUse {
  std::optional<std::int64_t> peak_kib;  // on all GPUs together
  std::optional<std::int64_t> percent;   // the mean of the samples

  bool operator==(const GpuUse&) const = default;
};

class GpuLedger {
 public:
  // Those of an earlier round are forgotten with the first one of the next.
  void note(int round, const GpuSample& sample);
  // Also of a worker that has ended.
  [[nodiscard]] GpuUse of(int round, pid_t worker) const;

 private:
  struct Entry {
    std::int64_t peak_kib = -1;
    std::int64_t percents = 0;  // the sum of
    std::int64_t samples = 0;   // that have told it
  };

  int round_ = 0;
  std::map<pid_t, Entry> workers_;
};

}  // namespace drun::launcher
