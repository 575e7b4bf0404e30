#include "launcher/devices/device_selection.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/cpu_list.hpp"
#include "base/lower_case.hpp"
#include "launcher/devices/device_masks.hpp"

namespace drun::launcher {
namespace {

// "node7" and "node7.cluster" are one machine; "node7.a" and "node7.b" are not.
bool same_host(std::string_view left, std::string_view right) {
  const std::string a = lower_case(left);
  const std::string b = lower_case(right);
  if (a == b) return true;
  const bool short_a = a.find('.') == std::string::npos;
  const bool short_b = b.find('.') == std::string::npos;
  return short_a != short_b && a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

bool this_machine(std::string_view name, const std::vector<std::string>& host_names) {
  if (lower_case(name) == "localhost" || name.starts_with("127.")) return true;
  return std::any_of(host_names.begin(), host_names.end(),
                     [&](const std::string& own) { return same_host(own, name); });
}

// "1,3-5,GPU-x": appended to selection.names.
Status add_names(std::string_view text, DeviceSelection& selection) {
  for (const auto& entry : mask_entries(text)) {
    std::vector<std::string> names;
    if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
      names.push_back(entry);
    } else {
      const auto numbers = parse_cpu_list(entry);
      if (entry.empty() || !numbers) {
        return selection.refused(
            "expected numbers, ranges or UUIDs with commas between, as in 1,3-5");
      }
      for (const int number : *numbers)
        names.push_back(std::to_string(number));
    }
    for (auto& name : names) {
      if (std::find(selection.names.begin(), selection.names.end(), name) !=
          selection.names.end()) {
        return selection.refused("GPU " + name + " is listed twice");
      }
      selection.names.push_back(std::move(name));
    }
  }
  return Done();
}

// DeepSpeed's NODE[:DEVICE,...] with @ between nodes. nullopt: this machine is not named.
Result<std::optional<DeviceSelection>> parse_nodes(std::string_view text, DeviceSelection selection,
                                                   const std::vector<std::string>& host_names) {
  bool named = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('@', begin), text.size());
    const auto node = text.substr(begin, end - begin);
    begin = end + 1;
    const auto colon = node.find(':');
    const auto host = node.substr(0, colon);
    if (host.empty() || host.find_first_not_of("0123456789,") == std::string_view::npos) {
      return selection.refused("expected HOST:DEVICES, as in localhost:1,3");
    }
    if (!this_machine(host, host_names)) continue;
    if (named) return selection.refused("names this machine twice");
    named = true;
    if (colon == std::string_view::npos) {
      selection.everything = true;
    } else if (auto added = add_names(node.substr(colon + 1), selection); !added) {
      return added.error();
    }
  }
  if (!named) return std::optional<DeviceSelection>();
  return std::optional<DeviceSelection>(std::move(selection));
}

}  // namespace

std::string DeviceSelection::text() const {
  return make_error_code(flag).message() + " '" + value + "'";
}

Error DeviceSelection::refused(const std::string& why) const {
  return launcher::refused(flag, " '" + value + "': " + why);
}

Result<DeviceSelection> parse_selection(const DeviceRequest& request) {
  const int given = static_cast<int>(!request.gpus.empty()) +
                    static_cast<int>(!request.include.empty()) +
                    static_cast<int>(!request.exclude.empty());
  if (given > 1)
    return refused("--gpu-ids, --include and --exclude all choose devices: give one of them");
  DeviceSelection selection;
  if (!request.gpus.empty()) {
    selection.value = request.gpus;
    selection.everything = request.gpus == "all";
    if (selection.everything) return selection;
    if (auto added = add_names(request.gpus, selection); !added) return added.error();
    return selection;
  }
  selection.exclude = request.include.empty();
  selection.flag = selection.exclude ? DeviceFlag::Exclude : DeviceFlag::Include;
  selection.value = selection.exclude ? request.exclude : request.include;
  const auto nodes = parse_nodes(selection.value, selection, request.host_names);
  if (!nodes) return nodes.error();
  if (*nodes) {
    if ((*nodes)->exclude && (*nodes)->everything) {
      return selection.refused("leaves out this machine altogether: do not start drun here");
    }
    return **nodes;
  }
  if (selection.exclude) {  // only others lose devices
    selection.exclude = false;
    selection.everything = true;
    return selection;
  }
  const std::string own = request.host_names.empty() ? "" : " (" + request.host_names.front() + ")";
  return selection.refused("does not name this machine" + own + "; localhost always does");
}

}  // namespace drun::launcher
