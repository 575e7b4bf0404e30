// NVIDIA's management library, loaded when it is asked for: drun is not linked with it. A child
// process does it, since the library leaves threads and descriptors behind and a sick driver may
// never answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace drun::launcher {

struct NvmlDevice {
  std::string uuid;         // "GPU-..."; empty: not told
  std::string pci_address;  // "0000:3b:00.0"; empty: not told
};

struct NvmlAnswer {
  std::vector<NvmlDevice> devices;  // in NVML's order, which is that of nvidia-smi
  // The GPUs that hold the asked-for MIG slices, in the order asked; an unknown one is all empty.
  std::vector<NvmlDevice> mig_parents;
};

// nullopt: no libnvidia-ml.so.1, or no driver that answers within 30 seconds. Call it before any
// thread exists.
[[nodiscard]] std::optional<NvmlAnswer> ask_nvml(const std::vector<std::string>& mig_uuids);

}  // namespace drun::launcher
