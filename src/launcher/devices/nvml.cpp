#include "launcher/devices/nvml.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <sstream>

#include "base/child_answer.hpp"
#include "base/loaded_library.hpp"

namespace drun::launcher {
namespace {

constexpr std::chrono::seconds kLimit{30};  // the driver may have to wake the devices first

// The part of nvml.h that is used. These entry points have kept their meaning since version 2 of
// each; every function returns 0 for success.
using Handle = void*;
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};
struct NvmlLibrary {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Handle*) = nullptr;
  int (*by_uuid)(const char*, Handle*) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;
  int (*pci)(Handle, PciInfo*) = nullptr;
  int (*mig_parent)(Handle, Handle*) = nullptr;  // null in drivers before 450
};

std::optional<NvmlLibrary> load() {
  NvmlLibrary nvml;
  LoadedLibrary file({"libnvidia-ml.so.1", "the list of GPUs", "2", "libnvidia-ml1"});
  file.need("nvmlInit_v2", nvml.init);
  file.need("nvmlShutdown", nvml.shutdown);
  file.need("nvmlDeviceGetCount_v2", nvml.count);
  file.need("nvmlDeviceGetHandleByIndex_v2", nvml.by_index);
  file.need("nvmlDeviceGetUUID", nvml.uuid);
  file.find("nvmlDeviceGetPciInfo_v3", nvml.pci);
  if (nvml.pci == nullptr) file.need("nvmlDeviceGetPciInfo_v2", nvml.pci);
  file.find("nvmlDeviceGetHandleByUUID", nvml.by_uuid);
  file.find("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", nvml.mig_parent);
  if (!file.status()) return {};
  return nvml;
}

std::string describe(const NvmlLibrary& nvml, Handle handle) {
  std::array<char, 96> uuid{};
  if (nvml.uuid(handle, uuid.data(), static_cast<unsigned>(uuid.size() - 1)) != 0) uuid = {'-'};
  std::array<char, 64> place{'-'};
  PciInfo pci{};
  if (nvml.pci(handle, &pci) == 0) {
    std::snprintf(place.data(), place.size(), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
  }
  return std::string(uuid.data()) + " " + place.data() + "\n";
}

// One line for each device, then one for each slice: "UUID PCI-ADDRESS", "-" for what is not known.
// nullopt: no library, or no driver.
std::optional<std::string> list_devices(const std::vector<std::string>& mig_uuids) {
  const auto nvml = load();
  unsigned count = 0;
  if (!nvml || nvml->init() != 0 || nvml->count(&count) != 0) return {};
  std::string result = std::to_string(count) + "\n";
  for (unsigned i = 0; i < count; ++i) {
    Handle handle = nullptr;
    // A GPU that fell off the bus keeps its number.
    result += nvml->by_index(i, &handle) == 0 ? describe(*nvml, handle) : "- -\n";
  }
  for (const auto& uuid : mig_uuids) {
    Handle slice = nullptr;
    Handle parent = nullptr;
    const bool found = nvml->by_uuid != nullptr && nvml->mig_parent != nullptr &&
                       nvml->by_uuid(uuid.c_str(), &slice) == 0 &&
                       nvml->mig_parent(slice, &parent) == 0;
    result += found ? describe(*nvml, parent) : "- -\n";
  }
  return result;
}

NvmlDevice read_device(std::istream& lines) {
  NvmlDevice result;
  lines >> result.uuid >> result.pci_address;
  if (result.uuid == "-") result.uuid.clear();
  if (result.pci_address == "-") result.pci_address.clear();
  return result;
}

}  // namespace

std::optional<NvmlAnswer> ask_nvml(const std::vector<std::string>& mig_uuids) {
  const auto text = answer_of_child([&] { return list_devices(mig_uuids); }, kLimit);
  if (!text) return {};
  std::istringstream lines(*text);
  std::size_t count = 0;
  lines >> count;
  NvmlAnswer result;
  for (std::size_t i = 0; i < count; ++i)
    result.devices.push_back(read_device(lines));
  for (std::size_t i = 0; i < mig_uuids.size(); ++i) {
    result.mig_parents.push_back(read_device(lines));
  }
  return result;
}

}  // namespace drun::launcher
