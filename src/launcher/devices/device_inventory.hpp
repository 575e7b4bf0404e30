// The accelerators of this machine, before any mask is applied: NVIDIA's through NVML (or the
// driver's files), AMD's and Intel's through sysfs.
#pragma once

#include <string>
#include <vector>

namespace drun::launcher {

enum class Vendor { Nvidia, Amd, Intel };
[[nodiscard]] const char* to_string(Vendor vendor);  // "NVIDIA"

struct Device {
  Vendor vendor = Vendor::Nvidia;
  int number = -1;          // as the vendor's tools number it; -1: known by `entry` only
  std::string uuid;         // "GPU-..."; empty: not known
  std::string pci_address;  // "0000:3b:00.0"; empty: not known
  int numa_node = -1;       // -1: the kernel does not know one
  std::string entry;        // what a mask variable of this job calls it: "1", "GPU-...", "0.1"

  bool operator==(const Device&) const = default;
};

struct DeviceInventory {
  std::vector<Device> nvidia;
  std::vector<Device> amd;
  std::vector<Device> intel;
  // The MIG slices that CUDA_VISIBLE_DEVICES names, in its order, if their GPU is known.
  std::vector<Device> mig;
  // NVIDIA's driver is there, whether or not its devices could be listed.
  bool nvidia_driver = false;

  [[nodiscard]] const std::vector<Device>& of(Vendor vendor) const;
};

enum class NvidiaListing {
  None,  // only whether the driver is there: costs next to nothing
  Full,  // loads NVML
};

// `root` is put in front of each path: "" for this machine. With another root NVML is not asked.
// Devices that this process may not open are left out, as in a container that was given only some.
[[nodiscard]] DeviceInventory read_device_inventory(const std::string& root, NvidiaListing nvidia,
                                                    const std::vector<std::string>& mig_uuids);

}  // namespace drun::launcher
