// Which devices the masks in the environment leave visible: CUDA_VISIBLE_DEVICES and its like, read
// as the vendors' libraries and torch read them. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/devices/device_inventory.hpp"

namespace drun::launcher {

// "1, 3 ,GPU-x" -> {"1", "3", "GPU-x"}; an empty text is one empty entry, as torchrun counts.
[[nodiscard]] std::vector<std::string> mask_entries(std::string_view mask);

// The MIG slices in CUDA_VISIBLE_DEVICES; empty if it holds none.
[[nodiscard]] std::vector<std::string> mig_entries(const std::vector<std::string>& environment);

// The visible devices of a list, in the mask's order, as CUDA reads a mask: numbers as strtoul
// does, up to the first that is negative, no number or out of range; a repeated one hides all. A
// list that begins with "GPU-" is matched by UUID prefix, an ambiguous one ends it. With `mixed`
// each entry may be either, as ROCR has it. Unset: all.
[[nodiscard]] std::vector<Device> apply_mask(const std::vector<Device>& devices,
                                             const std::optional<std::string>& mask, bool mixed);

// What a worker with this environment sees of one vendor's devices, in the order in which it
// numbers them; `entry` is what the first variable of mask_names() calls each.
[[nodiscard]] std::vector<Device> visible_devices(Vendor vendor, const DeviceInventory& inventory,
                                                  const std::vector<std::string>& environment);

// The variables to write so that a worker sees only some of what drun sees, and the one of them to
// read first: NVIDIA {CUDA_VISIBLE_DEVICES}, AMD {HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES} (both
// count what ROCR_VISIBLE_DEVICES leaves), Intel {ZE_AFFINITY_MASK}.
[[nodiscard]] std::vector<std::string> mask_names(Vendor vendor);
// The one that is in force; nullopt: none is set.
[[nodiscard]] std::optional<std::string> mask_in_force(Vendor vendor,
                                                       const std::vector<std::string>& environment);

// ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE: a card with several tiles is one device.
[[nodiscard]] bool composite_cards(const std::vector<std::string>& environment);

}  // namespace drun::launcher
