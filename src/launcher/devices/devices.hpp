// How many workers this machine gets and which devices each of them sees: --nproc-per-node
// auto|cpu|gpu|xpu, --gpu-ids, --include, --exclude, --virtual-local-rank. Pure: the machine comes
// in as an inventory.
#pragma once

#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/devices/device_inventory.hpp"
#include "launcher/devices/device_request.hpp"

namespace drun::launcher {

struct DevicePlan {
  int workers = 1;
  // The devices of this job, in the order in which its workers number them: the n-th is local rank
  // n's. Empty when the job has none, when they were not asked for, or when nobody can list them.
  std::vector<Device> devices;
  // For each local rank, the variables to set: "NAME=value". The same number of entries as workers.
  std::vector<std::vector<std::string>> environment;
  // For each local rank: "GPU 3 (0000:5e:00.0)", "GPUs 1,3,5"; empty: whatever drun itself sees.
  std::vector<std::string> descriptions;
  // For drun's log, one line each.
  std::vector<std::string> notes;
};

// What has to be read before plan_devices() can answer; `bound`: the devices' places are needed
// too, for --numa-binding or a map. A plain job needs nothing.
enum class InventoryNeed { Nothing, Presence, Everything };
[[nodiscard]] InventoryNeed inventory_need(const DeviceRequest& request, bool bound);

// `environment` is drun's own; `usable_cpus` is what --nproc-per-node cpu gives. Errors are the
// user's, one line, and carry the flag.
[[nodiscard]] Result<DevicePlan> plan_devices(const DeviceRequest& request,
                                              const DeviceInventory& inventory,
                                              const std::vector<std::string>& environment,
                                              int usable_cpus);

}  // namespace drun::launcher
