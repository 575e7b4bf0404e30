#include "launcher/devices/device_masks.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/environment_variable.hpp"
#include "base/trimmed.hpp"

namespace drun::launcher {
namespace {

constexpr std::string_view kBlank = " \t\r\n\f\v";

// The number that `text` begins with ("1gpu2" is 1); -1: none, negative, or beyond all reason.
int leading_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end != text.data() && value >= 0 ? value : -1;
}

// The only device whose UUID begins so; -1: none or several.
int find_uuid(const std::vector<Device>& devices, std::string_view prefix) {
  int found = -1;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].uuid.starts_with(prefix)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

std::vector<Device> visible_mig(const DeviceInventory& inventory,
                                const std::vector<std::string>& entries) {
  std::vector<Device> result;
  for (const auto& entry : entries) {
    const auto known = std::find_if(inventory.mig.begin(), inventory.mig.end(),
                                    [&](const Device& device) { return device.entry == entry; });
    if (known != inventory.mig.end()) {
      result.push_back(*known);
    } else {
      result.push_back({Vendor::Nvidia, -1, entry, "", -1, entry});
    }
  }
  return result;
}

std::vector<Device> visible_amd(const std::vector<Device>& all,
                                const std::vector<std::string>& environment) {
  auto result = apply_mask(all, environment_variable(environment, "ROCR_VISIBLE_DEVICES"), true);
  // HIP's mask counts what ROCR's leaves.
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i].entry = std::to_string(i);
  return apply_mask(result, mask_in_force(Vendor::Amd, environment), false);
}

// The tiles of one card are neighbours in the list.
std::vector<Device> cards_of(const std::vector<Device>& tiles) {
  std::vector<Device> result;
  for (const auto& tile : tiles) {
    if (!result.empty() && result.back().pci_address == tile.pci_address) continue;
    result.push_back(tile);
    result.back().number = static_cast<int>(result.size()) - 1;
    result.back().entry = std::to_string(result.back().number);
  }
  return result;
}

// "0,1"; with COMPOSITE also "0.0,0.1,1.0": the tiles of a card make up one device.
std::vector<Device> visible_intel(const std::vector<Device>& tiles,
                                  const std::vector<std::string>& environment) {
  const bool composite = composite_cards(environment);
  const auto all = composite ? cards_of(tiles) : tiles;
  const auto mask = environment_variable(environment, "ZE_AFFINITY_MASK");
  if (!mask || trimmed(*mask, kBlank).empty()) return all;
  std::vector<Device> result;
  for (const auto& entry : mask_entries(*mask)) {
    const int number = leading_number(entry);
    if (number < 0 || static_cast<std::size_t>(number) >= all.size()) continue;
    const auto known = std::find_if(result.begin(), result.end(),
                                    [&](const Device& device) { return device.number == number; });
    if (known == result.end()) {
      result.push_back(all[static_cast<std::size_t>(number)]);
      result.back().entry = entry;
    } else if (composite && known->entry != entry) {
      known->entry += "," + entry;
    }
  }
  return result;
}

}  // namespace

std::vector<std::string> mask_entries(std::string_view mask) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= mask.size();) {
    const auto end = std::min(mask.find(',', begin), mask.size());
    result.emplace_back(trimmed(mask.substr(begin, end - begin), kBlank));
    begin = end + 1;
  }
  return result;
}

std::vector<std::string> mig_entries(const std::vector<std::string>& environment) {
  const auto mask = environment_variable(environment, "CUDA_VISIBLE_DEVICES");
  if (!mask || !mask->starts_with("MIG-")) return {};
  std::vector<std::string> result;
  for (auto& entry : mask_entries(*mask)) {
    if (std::find(result.begin(), result.end(), entry) != result.end()) return {};
    if (!entry.starts_with("MIG-")) break;
    result.push_back(std::move(entry));
  }
  return result;
}

std::vector<Device> apply_mask(const std::vector<Device>& devices,
                               const std::optional<std::string>& mask, bool mixed) {
  if (!mask) return devices;
  const bool by_uuid = mask->starts_with("GPU-");
  std::vector<std::string> keys;  // numbers without trailing text, or UUID prefixes
  for (const auto& entry : mask_entries(*mask)) {
    std::string key = entry;
    if (mixed ? !entry.starts_with("GPU-") : !by_uuid) {
      const int number = leading_number(entry);
      if (number < 0) break;
      key = std::to_string(number);
    } else if (!entry.starts_with("GPU-")) {
      break;
    }
    // As in CUDA, a repeated entry hides all devices.
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return {};
    keys.push_back(std::move(key));
  }
  std::vector<Device> result;
  std::vector<bool> seen(devices.size());
  for (const auto& key : keys) {
    const bool uuid = key.starts_with("GPU-");
    const int found = uuid ? find_uuid(devices, key) : leading_number(key);
    if (found < 0 || static_cast<std::size_t>(found) >= devices.size()) break;
    const auto index = static_cast<std::size_t>(found);
    // The same device again, under another name.
    if (seen[index]) return {};
    seen[index] = true;
    result.push_back(devices[index]);
    if (uuid) result.back().entry = key;
  }
  return result;
}

std::vector<Device> visible_devices(Vendor vendor, const DeviceInventory& inventory,
                                    const std::vector<std::string>& environment) {
  switch (vendor) {
    case Vendor::Nvidia:
      if (const auto slices = mig_entries(environment); !slices.empty()) {
        return visible_mig(inventory, slices);
      }
      return apply_mask(inventory.nvidia, environment_variable(environment, "CUDA_VISIBLE_DEVICES"),
                        false);
    case Vendor::Amd:
      return visible_amd(inventory.amd, environment);
    case Vendor::Intel:
      break;
  }
  return visible_intel(inventory.intel, environment);
}

std::vector<std::string> mask_names(Vendor vendor) {
  switch (vendor) {
    case Vendor::Nvidia:
      return {"CUDA_VISIBLE_DEVICES"};
    case Vendor::Amd:
      return {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"};
    case Vendor::Intel:
      break;
  }
  return {"ZE_AFFINITY_MASK"};
}

std::optional<std::string> mask_in_force(Vendor vendor,
                                         const std::vector<std::string>& environment) {
  for (const auto& name : mask_names(vendor)) {
    if (auto value = environment_variable(environment, name)) return value;
  }
  return {};
}

bool composite_cards(const std::vector<std::string>& environment) {
  return environment_variable(environment, "ZE_FLAT_DEVICE_HIERARCHY").value_or("") == "COMPOSITE";
}

}  // namespace drun::launcher
