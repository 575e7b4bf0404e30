#include "launcher/devices/gpu_ledger.hpp"

#include <algorithm>

namespace drun::launcher {

void GpuLedger::note(int round, const GpuSample& sample) {
  if (round < round_) return;
  if (round > round_) workers_.clear();
  round_ = round;
  for (const WorkerOnGpus& each : sample.workers) {
    Entry& entry = workers_[each.worker];
    entry.peak_kib = std::max(entry.peak_kib, each.memory_kib);
    if (each.percent < 0) continue;
    entry.percents += each.percent;
    ++entry.samples;
  }
}

GpuUse GpuLedger::of(int round, pid_t worker) const {
  GpuUse use;
  const auto found = workers_.find(worker);
  if (round != round_ || found == workers_.end()) return use;
  const Entry& entry = found->second;
  if (entry.peak_kib >= 0) use.peak_kib = entry.peak_kib;
  if (entry.samples > 0) use.percent = (entry.percents + entry.samples / 2) / entry.samples;
  return use;
}

}  // namespace drun::launcher
