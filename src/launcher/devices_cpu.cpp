#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "launcher/devices.hpp"
#include "launcher/options_values.hpp"

namespace drun::launcher {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Where a control group hierarchy is mounted, and which of its groups appears there.
struct Mount {
  std::string root;
  std::string point;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result = split(text, '\n');
  std::erase(result, "");
  return result;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word);
  return result;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

bool has_item(std::string_view list, std::string_view item) {
  const auto items = split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// /proc/self/mountinfo: "36 35 98:0 /root /mount/point options [tags] - type source superoptions"
std::optional<Mount> find_mount(const std::string& mountinfo, bool version2) {
  for (const std::string& line : lines_of(mountinfo)) {
    const auto words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool fits =
        version2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && has_item(dash[3], "cpu");
    if (fits) return Mount{words[3], words[4]};
  }
  return std::nullopt;
}

// /proc/self/cgroup: "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1.
std::optional<std::string> find_group(const std::string& cgroups, bool version2) {
  for (const std::string& line : lines_of(cgroups)) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool fits =
        version2 ? line.starts_with("0:") && controllers.empty() : has_item(controllers, "cpu");
    if (fits) return line.substr(second + 1);
  }
  return std::nullopt;
}

// CPUs that one group may use: "max 100000", "150000 100000"; version 1 has two files and -1.
double quota_of(const FileSource& files, const std::string& directory, bool version2) {
  std::optional<double> quota;
  std::optional<double> period;
  if (version2) {
    const auto words = words_of(files.read(directory + "/cpu.max").value_or(""));
    if (words.size() == 2) {
      quota = number_in(words[0]);
      period = number_in(words[1]);
    }
  } else {
    quota = number_in(files.read(directory + "/cpu.cfs_quota_us").value_or(""));
    period = number_in(files.read(directory + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return kUnlimited;
  return *quota / *period;
}

// The smallest quota from the process's group up to the root of what is mounted.
double quota(const FileSource& files, bool version2) {
  const auto mount = find_mount(files.read("/proc/self/mountinfo").value_or(""), version2);
  const auto group = find_group(files.read("/proc/self/cgroup").value_or(""), version2);
  if (!mount || !group) return kUnlimited;
  std::string path = *group;
  if (mount->root != "/") {
    // A container that sees the host's path but has only its own part mounted.
    path = path.starts_with(mount->root) ? path.substr(mount->root.size()) : "";
  }
  double result = quota_of(files, mount->point, version2);
  while (!path.empty() && path != "/") {
    result = std::min(result, quota_of(files, mount->point + path, version2));
    path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return result;
}

}  // namespace

int usable_cpus(const Machine& machine) {
  const double limit = std::min(quota(machine.files, true), quota(machine.files, false));
  const double cpus = std::min(limit, static_cast<double>(machine.affinity));
  return std::max(1, static_cast<int>(cpus));
}

}  // namespace drun::launcher
