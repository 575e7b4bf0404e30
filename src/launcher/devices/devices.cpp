#include "launcher/devices/devices.hpp"

#include <algorithm>
#include <string_view>

#include "base/cpu_list.hpp"
#include "base/environment_variable.hpp"
#include "base/whole_number.hpp"
#include "launcher/devices/device_masks.hpp"
#include "launcher/devices/device_selection.hpp"

namespace drun::launcher {
namespace {

std::string join(const std::vector<Device>& devices) {
  std::string result;
  for (const auto& device : devices) {
    if (!result.empty()) result += ',';
    result += device.entry;
  }
  return result;
}

// The devices as the machine numbers them, if that is known.
std::string list_devices(const std::vector<Device>& devices) {
  std::string result;
  for (const auto& device : devices) {
    if (!result.empty()) result += ',';
    result += device.number >= 0 ? std::to_string(device.number) : device.entry;
  }
  return result;
}

// The first vendor with a visible device.
std::optional<Vendor> visible_vendor(const std::vector<Vendor>& vendors,
                                     const DeviceInventory& inventory,
                                     const std::vector<std::string>& environment) {
  for (const Vendor vendor : vendors) {
    if (!visible_devices(vendor, inventory, environment).empty()) return vendor;
  }
  return {};
}

// The vendor whose masks to write if only the drivers are known.
Vendor likely_vendor(const DeviceInventory& inventory) {
  if (inventory.nvidia_driver || !inventory.nvidia.empty()) return Vendor::Nvidia;
  if (!inventory.amd.empty()) return Vendor::Amd;
  return inventory.intel.empty() ? Vendor::Nvidia : Vendor::Intel;
}

// Why no device is visible: the mask hides them, or there is none.
std::string absence(Vendor vendor, const DeviceInventory& inventory,
                    const std::vector<std::string>& environment) {
  const std::string name = to_string(vendor);
  const auto count = inventory.of(vendor).size();
  if (count == 0) return "no " + name + " GPU found";
  for (const char* mask : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                           "ZE_AFFINITY_MASK"}) {
    const std::string_view text = mask;
    const bool fits = vendor == Vendor::Intel    ? text.starts_with("ZE")
                      : vendor == Vendor::Nvidia ? text.starts_with("CUDA")
                                                 : !text.starts_with("ZE");
    if (!fits) continue;
    if (const auto value = environment_variable(environment, mask)) {
      return std::string(text) + "=" + *value + " leaves none of " + std::to_string(count) + " " +
             name + " GPUs";
    }
  }
  return "no " + name + " GPU is visible";
}

// For a machine on which nobody lists the devices: those that the mask names or, without a mask, as
// many as are needed.
Result<std::vector<Device>> assumed_devices(const DeviceSelection& selection,
                                            const std::vector<std::string>& environment) {
  std::vector<Device> result;
  if (const auto mask = environment_variable(environment, "CUDA_VISIBLE_DEVICES")) {
    for (const auto& entry : mask_entries(*mask)) {
      const std::string uuid = entry.starts_with("GPU-") ? entry : "";
      result.push_back(
          {Vendor::Nvidia, whole_number<int>(entry).value_or(-1), uuid, "", -1, entry});
    }
    return result;
  }
  if (selection.exclude || selection.everything) {
    return selection.refused(
        "no GPU found (neither a driver of NVIDIA, AMD or Intel nor "
        "the library libnvidia-ml.so.1); --gpu-ids 0,1 needs no list");
  }
  int last = -1;
  for (const auto& name : selection.names)
    last = std::max(last, whole_number<int>(name).value_or(-1));
  for (int i = 0; i <= last; ++i) {
    result.push_back({Vendor::Nvidia, i, "", "", -1, std::to_string(i)});
  }
  for (const auto& name : selection.names) {
    if (!whole_number<int>(name)) result.push_back({Vendor::Nvidia, -1, name, "", -1, name});
  }
  return result;
}

// The place in `visible` that a name means.
std::optional<std::size_t> place_of(const std::string& name, const std::vector<Device>& visible) {
  if (const auto number = whole_number<int>(name)) {
    const auto place = static_cast<std::size_t>(*number);
    return place < visible.size() ? std::optional(place) : std::nullopt;
  }
  for (std::size_t i = 0; i < visible.size(); ++i) {
    if (visible[i].uuid.starts_with(name) || visible[i].entry.starts_with(name)) return i;
  }
  return {};
}

Result<std::vector<Device>> select(const DeviceSelection& selection,
                                   const std::vector<Device>& visible) {
  if (selection.everything) return visible;
  std::vector<std::size_t> places;
  for (const auto& name : selection.names) {
    const auto place = place_of(name, visible);
    if (!place) {
      return selection.refused("there is no GPU " + name + ": " +
                               (visible.size() == 1
                                    ? std::string("only GPU 0 is visible")
                                    : "visible are 0 to " + std::to_string(visible.size() - 1)));
    }
    if (std::find(places.begin(), places.end(), *place) != places.end()) {
      return selection.refused("GPU " + name + " is listed twice");
    }
    places.push_back(*place);
  }
  std::vector<Device> result;
  if (!selection.exclude) {
    for (const auto place : places)
      result.push_back(visible[place]);
    return result;
  }
  for (std::size_t i = 0; i < visible.size(); ++i) {
    if (std::find(places.begin(), places.end(), i) == places.end()) result.push_back(visible[i]);
  }
  if (result.empty()) return selection.refused("no GPU is left");
  return result;
}

struct Choice {
  Vendor vendor = Vendor::Nvidia;
  std::vector<Device> devices;
  bool selected = false;
};

Result<Choice> choose_selected(const DeviceRequest& request, const DeviceInventory& inventory,
                               const std::vector<std::string>& environment, DevicePlan& plan) {
  const auto selection = parse_selection(request);
  if (!selection) return selection.error();
  Choice choice;
  choice.selected = true;
  const bool nothing = inventory.nvidia.empty() && inventory.amd.empty() && inventory.intel.empty();
  choice.vendor = request.counted_by() == CountedBy::Xpu ? Vendor::Intel : likely_vendor(inventory);
  std::vector<Device> visible;
  if (nothing || (choice.vendor == Vendor::Nvidia && inventory.nvidia.empty())) {
    auto assumed = assumed_devices(*selection, environment);
    if (!assumed) return assumed.error();
    visible = std::move(*assumed);
    plan.notes.push_back(selection->text() + " is not checked: no driver lists the GPUs here");
  } else {
    visible = visible_devices(choice.vendor, inventory, environment);
    if (visible.empty()) {
      return selection->refused(absence(choice.vendor, inventory, environment));
    }
  }
  auto chosen = select(*selection, visible);
  if (!chosen) return chosen.error();
  choice.devices = std::move(*chosen);
  return choice;
}

Result<Choice> choose_visible(std::optional<CountedBy> what, const DeviceInventory& inventory,
                              const std::vector<std::string>& environment) {
  Choice choice;
  choice.vendor = likely_vendor(inventory);
  if (what == CountedBy::Cpu) return choice;
  const bool unlisted = choice.vendor == Vendor::Nvidia && inventory.nvidia.empty();
  if (!what && inventory.nvidia_driver && unlisted) return choice;
  std::vector<Vendor> vendors{Vendor::Nvidia, Vendor::Amd, Vendor::Intel};
  if (what == CountedBy::Gpu) vendors.pop_back();
  if (what == CountedBy::Xpu) vendors = {Vendor::Intel};
  if (const auto vendor = visible_vendor(vendors, inventory, environment)) {
    choice.vendor = *vendor;
    choice.devices = visible_devices(*vendor, inventory, environment);
  } else if (what == CountedBy::Gpu) {
    const bool amd = inventory.nvidia.empty() && !inventory.amd.empty();
    const bool none = inventory.nvidia.empty() && inventory.amd.empty();
    return refused(
        DeviceFlag::Workers,
        " 'gpu': " + (none ? std::string("no NVIDIA or AMD GPU found")
                           : absence(amd ? Vendor::Amd : Vendor::Nvidia, inventory, environment)));
  } else if (what == CountedBy::Xpu) {
    return refused(DeviceFlag::Workers,
                   " 'xpu': " + absence(Vendor::Intel, inventory, environment));
  }
  return choice;
}

int count_workers(const DeviceRequest& request, const Choice& choice, int usable_cpus,
                  DevicePlan& plan) {
  const auto what = request.counted_by();
  if (what == CountedBy::Cpu) return usable_cpus;
  if (!what && (request.workers || !choice.selected)) return request.known_workers();
  if (choice.devices.empty()) return usable_cpus;
  const bool slices = choice.devices.front().entry.starts_with("MIG-");
  if (slices && choice.devices.size() > 1 && !request.virtual_local_rank) {
    plan.notes.push_back("one worker for " + std::to_string(choice.devices.size()) +
                         " MIG slices: a process sees only the first of several; "
                         "--virtual-local-rank gives each worker its own");
    return 1;
  }
  return static_cast<int>(choice.devices.size());
}

// What each worker's mask says with --virtual-local-rank: the n-th entry of the selection or of the
// inherited mask, else n.
Result<std::vector<std::string>> own_entries(const Choice& choice, int workers,
                                             const DeviceInventory& inventory,
                                             const std::vector<std::string>& environment) {
  std::vector<std::string> list;
  std::string named;  // where the list is from
  if (choice.selected) {
    for (const auto& device : choice.devices)
      list.push_back(device.entry);
    named = "--gpu-ids, --include or --exclude";
  } else if (choice.vendor == Vendor::Intel) {
    for (const auto& device : visible_devices(Vendor::Intel, inventory, environment)) {
      list.push_back(device.entry);
    }
    named = "ZE_AFFINITY_MASK";
  } else if (const auto mask = mask_in_force(choice.vendor, environment)) {
    list = mask_entries(*mask);
    const auto names = mask_names(choice.vendor);
    named = environment_variable(environment, names.front()) ? names.front() : names.back();
    named += "=" + *mask;
  } else if (const auto rocr = environment_variable(environment, "ROCR_VISIBLE_DEVICES");
             rocr && choice.vendor == Vendor::Amd) {
    for (std::size_t i = 0; i < mask_entries(*rocr).size(); ++i)
      list.push_back(std::to_string(i));
    named = "ROCR_VISIBLE_DEVICES=" + *rocr;
  }
  const auto count = static_cast<std::size_t>(workers);
  if (named.empty()) {
    for (std::size_t i = 0; i < count; ++i)
      list.push_back(std::to_string(i));
  }
  if (list.size() < count) {
    return refused(DeviceFlag::VirtualLocalRank, ": " + std::to_string(workers) +
                                                     " workers need a GPU each, and " + named +
                                                     " leaves " + std::to_string(list.size()));
  }
  list.resize(count);
  return list;
}

std::string describe_device(Vendor vendor, const std::string& entry, const Device* device) {
  const std::string kind = vendor == Vendor::Intel ? "XPU " : "GPU ";
  if (device == nullptr) return kind + entry;
  std::string result = device->number >= 0 ? kind + std::to_string(device->number) : entry;
  if (!device->pci_address.empty()) result += " (" + device->pci_address + ")";
  return result;
}

}  // namespace

InventoryNeed inventory_need(const DeviceRequest& request, bool bound) {
  const auto what = request.counted_by();
  if (request.selects() || (what && what != CountedBy::Cpu)) return InventoryNeed::Everything;
  if (bound && what != CountedBy::Cpu) return InventoryNeed::Everything;
  return request.virtual_local_rank ? InventoryNeed::Presence : InventoryNeed::Nothing;
}

Result<DevicePlan> plan_devices(const DeviceRequest& request, const DeviceInventory& inventory,
                                const std::vector<std::string>& environment, int usable_cpus) {
  DevicePlan plan;
  auto choice = request.selects() ? choose_selected(request, inventory, environment, plan)
                                  : choose_visible(request.counted_by(), inventory, environment);
  if (!choice) return choice.error();
  plan.workers = count_workers(request, *choice, usable_cpus, plan);
  const auto count = static_cast<std::size_t>(plan.workers);
  plan.environment.resize(count);
  plan.descriptions.resize(count);

  std::vector<std::string> entries;
  if (request.virtual_local_rank) {
    auto own = own_entries(*choice, plan.workers, inventory, environment);
    if (!own) return own.error();
    entries = std::move(*own);
  } else if (choice->selected) {
    entries.assign(count, join(choice->devices));
  }
  // The numbers of --gpu-ids are nvidia-smi's, which counts by PCI address; CUDA counts the fastest
  // first unless it is told otherwise.
  const bool number_order = choice->selected && choice->vendor == Vendor::Nvidia &&
                            !environment_variable(environment, "CUDA_VISIBLE_DEVICES") &&
                            !environment_variable(environment, "CUDA_DEVICE_ORDER");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (const auto& name : mask_names(choice->vendor)) {
      plan.environment[i].push_back(name + "=" + entries[i]);
    }
    if (number_order) plan.environment[i].emplace_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Device* const device = i < choice->devices.size() ? &choice->devices[i] : nullptr;
    if (request.virtual_local_rank) {
      plan.descriptions[i] = describe_device(choice->vendor, entries[i], device);
    } else if (device != nullptr && count <= choice->devices.size()) {
      plan.descriptions[i] = describe_device(choice->vendor, device->entry, device);
      if (choice->selected && choice->devices.size() > 1) {
        plan.descriptions[i] += " of " + list_devices(choice->devices);
      }
    } else if (choice->selected) {
      plan.descriptions[i] = "GPUs " + list_devices(choice->devices);
    }
  }
  plan.devices = std::move(choice->devices);
  return plan;
}

}  // namespace drun::launcher
