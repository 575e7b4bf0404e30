#include "launcher/devices/device_inventory.hpp"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/small_file.hpp"
#include "base/trimmed.hpp"
#include "base/usable_cpus.hpp"
#include "base/whole_number.hpp"
#include "launcher/devices/nvml.hpp"

namespace drun::launcher {
namespace {

// Names in a folder that start with `prefix`, sorted; none when it is not there.
std::vector<std::string> list_folder(const std::string& path, std::string_view prefix) {
  std::vector<std::string> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  while (folder) {
    const dirent* const item = ::readdir(folder.get());
    if (item == nullptr) break;
    const std::string_view name = item->d_name;
    if (name != "." && name != ".." && name.starts_with(prefix)) result.emplace_back(name);
  }
  std::sort(result.begin(), result.end());
  return result;
}

// The last part of a link's target; empty if there is none.
std::string target_name(const std::string& link) {
  const std::unique_ptr<char, void (*)(void*)> path(::realpath(link.c_str(), nullptr), ::free);
  if (!path) return {};
  const std::string_view text = path.get();
  return std::string(text.substr(text.rfind('/') + 1));
}

template <typename Number>
std::optional<Number> parse_whole(std::string_view text, int base = 10) {
  return whole_number<Number>(trimmed(text), base);
}

// "renderD128" -> 128
std::optional<int> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  return parse_whole<int>(name.substr(prefix.size()));
}

int read_numa_node(const std::string& root, const std::string& pci_address) {
  if (pci_address.empty()) return -1;
  const auto text = read_small_file(root + "/sys/bus/pci/devices/" + pci_address + "/numa_node");
  return text ? parse_whole<int>(*text).value_or(-1) : -1;
}

// In the order of their PCI addresses, as NVML and Level Zero number them.
void number_devices(std::vector<Device>& devices) {
  std::stable_sort(devices.begin(), devices.end(),
                   [](const Device& a, const Device& b) { return a.pci_address < b.pci_address; });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].number = static_cast<int>(i);
    devices[i].entry = std::to_string(i);
  }
}

// What the driver's own files tell, for containers that have CUDA but not NVML.
std::vector<Device> read_nvidia_files(const std::string& root) {
  std::vector<Device> result;
  const std::string folder = root + "/proc/driver/nvidia/gpus";
  for (const auto& name : list_folder(folder, "")) {
    Device device;
    device.vendor = Vendor::Nvidia;
    device.pci_address = name;
    if (const auto text = read_small_file(folder + "/" + name + "/information")) {
      constexpr std::string_view kName = "GPU UUID:";
      if (auto at = text->find(kName); at != std::string::npos) {
        at = text->find_first_not_of(" \t", at + kName.size());
        const auto end = text->find_first_of(" \t\n", at);
        if (at != std::string::npos) device.uuid = text->substr(at, end - at);
      }
    }
    if (!device.uuid.starts_with("GPU-") || device.uuid.find('?') != std::string::npos) {
      device.uuid.clear();
    }
    result.push_back(std::move(device));
  }
  number_devices(result);
  return result;
}

void list_nvidia(const std::string& root, const std::vector<std::string>& mig_uuids,
                 DeviceInventory& inventory) {
  const auto answer = root.empty() ? ask_nvml(mig_uuids) : std::nullopt;
  if (!answer) {
    inventory.nvidia = read_nvidia_files(root);
  } else {
    for (const auto& known : answer->devices) {
      const int number = static_cast<int>(inventory.nvidia.size());
      inventory.nvidia.push_back(
          {Vendor::Nvidia, number, known.uuid, known.pci_address, -1, std::to_string(number)});
    }
    for (std::size_t i = 0; i < mig_uuids.size(); ++i) {
      const auto& parent = answer->mig_parents[i];
      inventory.mig.push_back(
          {Vendor::Nvidia, -1, mig_uuids[i], parent.pci_address, -1, mig_uuids[i]});
    }
  }
  for (auto* list : {&inventory.nvidia, &inventory.mig}) {
    for (auto& device : *list)
      device.numa_node = read_numa_node(root, device.pci_address);
  }
  if (!inventory.nvidia.empty()) inventory.nvidia_driver = true;
}

// The lines "name value" of a kfd node.
std::map<std::string, std::uint64_t, std::less<>> parse_properties(std::string_view text) {
  std::map<std::string, std::uint64_t, std::less<>> result;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    if (const auto blank = line.find(' '); blank != std::string_view::npos) {
      if (const auto value = parse_whole<std::uint64_t>(line.substr(blank + 1))) {
        result.emplace(line.substr(0, blank), *value);
      }
    }
    begin = end + 1;
  }
  return result;
}

// GPUs are the nodes of the kernel's compute topology that have SIMD units. The kernel lets no
// process read the properties of a node whose device it may not open; a container may also lack the
// device file.
std::vector<Device> read_amd(const std::string& root) {
  std::vector<Device> result;
  if (::access((root + "/dev/kfd").c_str(), F_OK) != 0) return result;
  const std::string folder = root + "/sys/class/kfd/kfd/topology/nodes";
  std::vector<int> nodes;
  for (const auto& name : list_folder(folder, "")) {
    if (const auto number = parse_whole<int>(name)) nodes.push_back(*number);
  }
  std::sort(nodes.begin(), nodes.end());
  for (const int node : nodes) {
    const auto text = read_small_file(folder + "/" + std::to_string(node) + "/properties");
    if (!text) continue;
    const auto properties = parse_properties(*text);
    const auto value = [&](std::string_view name) {
      const auto found = properties.find(name);
      return found == properties.end() ? std::uint64_t{0} : found->second;
    };
    if (value("simd_count") == 0) continue;
    const auto minor = value("drm_render_minor");
    const std::string render_node = root + "/dev/dri/renderD" + std::to_string(minor);
    if (minor != 0 && ::access(render_node.c_str(), F_OK) != 0) continue;
    Device device;
    device.vendor = Vendor::Amd;
    device.number = static_cast<int>(result.size());
    device.entry = std::to_string(device.number);
    std::array<char, 64> buffer{};
    const auto location = static_cast<unsigned>(value("location_id"));  // bus, device, function
    std::snprintf(buffer.data(), buffer.size(), "%04x:%02x:%02x.%x",
                  static_cast<unsigned>(value("domain")), (location >> 8U) & 0xffU,
                  (location >> 3U) & 0x1fU, location & 7U);
    device.pci_address = buffer.data();
    if (const auto id = value("unique_id"); id != 0) {
      std::snprintf(buffer.data(), buffer.size(), "GPU-%016llx",
                    static_cast<unsigned long long>(id));
      device.uuid = buffer.data();
    }
    device.numa_node = read_numa_node(root, device.pci_address);
    result.push_back(std::move(device));
  }
  return result;
}

// How many tiles a card has: the xe driver lists them below the device, i915 as gt0, gt1, ... below
// the card (discrete cards with a media engine of its own have xe).
std::size_t count_tiles(const std::string& render_node) {
  const auto xe = list_folder(render_node + "/device", "tile").size();
  if (xe > 0) return xe;
  for (const auto& card : list_folder(render_node + "/device/drm", "card")) {
    const auto i915 = list_folder(render_node + "/device/drm/" + card + "/gt", "gt").size();
    if (i915 > 0) return i915;
  }
  return 1;
}

// Each tile is a device of its own, as Level Zero has it by default. Integrated graphics, always at
// 0000:00:02.0, are no device of a job.
std::vector<Device> read_intel(const std::string& root) {
  std::vector<Device> result;
  const std::string folder = root + "/sys/class/drm";
  for (const auto& name : list_folder(folder, "renderD")) {
    if (!number_after(name, "renderD")) continue;
    const std::string path = folder + "/" + name;
    const auto vendor = read_small_file(path + "/device/vendor");
    if (!vendor || !vendor->starts_with("0x8086")) continue;
    if (::access((root + "/dev/dri/" + name).c_str(), F_OK) != 0) continue;
    Device device;
    device.vendor = Vendor::Intel;
    device.pci_address = target_name(path + "/device");
    if (device.pci_address.empty() || device.pci_address == "0000:00:02.0") continue;
    device.numa_node = read_numa_node(root, device.pci_address);
    const auto tiles = count_tiles(path);
    for (std::size_t tile = 0; tile < tiles; ++tile)
      result.push_back(device);
  }
  number_devices(result);
  return result;
}

}  // namespace

const char* to_string(Vendor vendor) {
  switch (vendor) {
    case Vendor::Nvidia:
      return "NVIDIA";
    case Vendor::Amd:
      return "AMD";
    case Vendor::Intel:
      return "Intel";
  }
  return "unknown";
}

const std::vector<Device>& DeviceInventory::of(Vendor vendor) const {
  switch (vendor) {
    case Vendor::Nvidia:
      return nvidia;
    case Vendor::Amd:
      return amd;
    case Vendor::Intel:
      break;
  }
  return intel;
}

DeviceInventory read_device_inventory(const std::string& root, NvidiaListing nvidia,
                                      const std::vector<std::string>& mig_uuids) {
  DeviceInventory result;
  result.nvidia_driver = ::access((root + "/dev/nvidiactl").c_str(), F_OK) == 0 ||
                         ::access((root + "/proc/driver/nvidia/version").c_str(), F_OK) == 0;
  if (nvidia == NvidiaListing::Full) list_nvidia(root, mig_uuids, result);
  result.amd = read_amd(root);
  result.intel = read_intel(root);
  return result;
}

}  // namespace drun::launcher
