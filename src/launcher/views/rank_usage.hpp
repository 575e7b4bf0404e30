// What a worker has used, as it is told under its rank.
#pragma once

#include "jobs/usage.hpp"
#include "launcher/devices/gpu_ledger.hpp"
#include "launcher/process/usage.hpp"

namespace drun::launcher {

[[nodiscard]] inline jobs::RankUsage usage_of_rank(int rank, const process::Usage& used,
                                                   const GpuUse& gpus) {
  return {rank,          used.cpu_ms,   used.peak_kib, used.read_kib, used.written_kib,
          used.switches, gpus.peak_kib, gpus.percent};
}

}  // namespace drun::launcher
