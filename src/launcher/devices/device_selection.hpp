// What --gpu-ids, --include and --exclude say about this machine, before it is matched with the
// devices that are there. Pure.
#pragma once

#include <string>
#include <vector>

#include "drun/base/result.hpp"
#include "launcher/devices/device_request.hpp"

namespace drun::launcher {

struct DeviceSelection {
  DeviceFlag flag = DeviceFlag::Gpus;
  std::string value;  // as the user wrote it
  bool exclude = false;
  bool everything = false;  // all visible ones; `names` is empty
  // Places in the list of visible devices, or UUIDs that begin with GPU- or MIG-.
  std::vector<std::string> names{};

  // "--gpu-ids '1,3,5'", for messages
  [[nodiscard]] std::string text() const;
  [[nodiscard]] Error refused(const std::string& why) const;
};

// Precondition: request.selects(). Ranges are spelled out; a name given twice is an error, so are
// two of the flags together, and an --include that does not name this machine.
[[nodiscard]] Result<DeviceSelection> parse_selection(const DeviceRequest& request);

}  // namespace drun::launcher
