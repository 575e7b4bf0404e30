#include "launcher/devices.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <set>

#include "launcher/options_scan.hpp"
#include "launcher/options_values.hpp"

namespace drun::launcher {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\n") - first + 1));
}

// The number that a text begins with, as strtoul takes it ("1gpu2" is 1); -1: none or negative.
int leading_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int value = -1;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  return ec == std::errc() && end != text.data() && value >= 0 ? value : -1;
}

// Which GPU a UUID, perhaps shortened, means; -1: none, or several.
int by_uuid(const NvidiaGpus& gpus, std::string_view uuid) {
  int found = -1;
  for (std::size_t i = 0; i < gpus.uuids.size(); ++i) {
    if (!gpus.uuids[i].starts_with(uuid)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

// The entries of a mask as numbers, up to the first that `index_of` does not know (-1) or that is
// out of range; none at all when one is repeated.
template <typename IndexOf>
std::vector<int> select(const char* mask, int count, IndexOf index_of) {
  std::vector<int> result;
  for (const std::string& item : split(mask, ',')) {
    const int index = index_of(trimmed(item));
    if (index < 0) break;
    if (std::find(result.begin(), result.end(), index) != result.end()) return {};
    result.push_back(index);
  }
  const auto outside =
      std::find_if(result.begin(), result.end(), [&](int index) { return index >= count; });
  result.erase(outside, result.end());
  return result;
}

std::optional<long long> property(const std::string& properties, std::string_view name) {
  for (const std::string& line : split(properties, '\n')) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    const std::string value = trimmed(std::string_view(line).substr(name.size()));
    long long number = 0;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (ec == std::errc() && end == value.data() + value.size()) return number;
  }
  return std::nullopt;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// KFD lists CPUs too: they have no SIMD units. A GPU without a device node is not this container's.
int rocm_gpus(const FileSource& files) {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
  const auto render_nodes = files.list("/dev/dri");
  int count = 0;
  for (const std::string& node : files.list(nodes)) {
    const auto text = files.read((std::filesystem::path(nodes) / node / "properties").string());
    if (!text || property(*text, "simd_count").value_or(0) <= 0) continue;
    const auto minor = property(*text, "drm_render_minor");
    if (minor && contains(render_nodes, "renderD" + std::to_string(*minor))) ++count;
  }
  return count;
}

// Tiles are devices of their own, as Level Zero counts them by default.
int intel_gpus(const FileSource& files) {
  const auto render_nodes = files.list("/dev/dri");
  int count = 0;
  for (const std::string& name : files.list("/sys/class/drm")) {
    if (!name.starts_with("renderD") || !contains(render_nodes, name)) continue;
    const std::string device = "/sys/class/drm/" + name + "/device";
    if (trimmed(files.read(device + "/vendor").value_or("")) != "0x8086") continue;
    const auto entries = files.list(device);
    const auto tiles = std::count_if(entries.begin(), entries.end(), [](const std::string& entry) {
      return entry.size() > 4 && entry.starts_with("tile") &&
             std::isdigit(static_cast<unsigned char>(entry[4])) != 0;
    });
    count += std::max(1, static_cast<int>(tiles));
  }
  return count;
}

Error none(const std::string& what) {
  return Error(std::make_error_code(std::errc::no_such_device), what);
}

Result<int> count_gpus(const std::vector<std::string>& environment, const Machine& machine) {
  const char* mask = variable(environment, "CUDA_VISIBLE_DEVICES");
  const auto nvidia = machine.nvidia ? machine.nvidia() : std::nullopt;
  if (nvidia && !nvidia->uuids.empty()) {
    const auto visible = visible_nvidia(*nvidia, mask).size();
    if (visible > 0) return static_cast<int>(visible);
    return none("CUDA_VISIBLE_DEVICES=" + quote(mask == nullptr ? "" : mask) + " leaves none of " +
                std::to_string(nvidia->uuids.size()) + " GPUs");
  }
  const int rocm = visible_rocm(machine.files, environment);
  if (rocm > 0) return rocm;
  return none("no NVIDIA or AMD GPU is visible on this machine");
}

}  // namespace

std::vector<int> visible_nvidia(const NvidiaGpus& gpus, const char* mask) {
  const int count = static_cast<int>(gpus.uuids.size());
  if (mask == nullptr) {
    std::vector<int> all(gpus.uuids.size());
    for (int i = 0; i < count; ++i)
      all[static_cast<std::size_t>(i)] = i;
    return all;
  }
  const std::string_view text = mask;
  // One process sees one slice of a GPU, however many are listed.
  if (text.starts_with("MIG-")) return {0};
  if (text.starts_with("GPU-")) {
    return select(mask, count, [&](const std::string& item) {
      return item.starts_with("GPU-") ? by_uuid(gpus, item) : -1;
    });
  }
  return select(mask, count, leading_number);
}

int visible_rocm(const FileSource& files, const std::vector<std::string>& environment) {
  int count = rocm_gpus(files);
  if (count == 0) return 0;
  if (const char* runtime = variable(environment, "ROCR_VISIBLE_DEVICES")) {
    count = std::min(count, static_cast<int>(split(runtime, ',').size()));
    if (*runtime == '\0') count = 0;
  }
  const char* mask = variable(environment, "HIP_VISIBLE_DEVICES");
  if (mask == nullptr) mask = variable(environment, "CUDA_VISIBLE_DEVICES");
  if (mask == nullptr) return count;
  return static_cast<int>(select(mask, count, leading_number).size());
}

int visible_intel(const FileSource& files, const std::vector<std::string>& environment) {
  const int count = intel_gpus(files);
  const char* mask = variable(environment, "ZE_AFFINITY_MASK");
  if (mask == nullptr || *mask == '\0') return count;
  std::set<std::string> chosen;
  for (const std::string& item : split(mask, ',')) {
    const int device = leading_number(trimmed(item));
    if (device >= 0 && device < count) chosen.insert(trimmed(item));
  }
  return static_cast<int>(chosen.size());
}

Result<int> count_devices(DeviceKind kind, const std::vector<std::string>& environment,
                          const Machine& machine) {
  if (kind == DeviceKind::Cpu) return usable_cpus(machine);
  if (kind == DeviceKind::Gpu || kind == DeviceKind::Auto) {
    auto gpus = count_gpus(environment, machine);
    if (gpus || kind == DeviceKind::Gpu) return gpus;
  }
  const int intel = visible_intel(machine.files, environment);
  if (intel > 0) return intel;
  if (kind == DeviceKind::Auto) return usable_cpus(machine);
  return none("no Intel GPU is visible on this machine");
}

}  // namespace drun::launcher
