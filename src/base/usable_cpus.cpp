#include "base/usable_cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/cgroup_mounts.hpp"
#include "base/cpu_list.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"

namespace drun {
namespace {

std::optional<double> parse_positive(std::string_view text) {
  const auto value = whole_number<long long>(trimmed(text));
  if (!value || *value <= 0) return {};
  return static_cast<double>(*value);
}

}  // namespace

std::vector<QuotaFolder> quota_folders(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<QuotaFolder> result;
  for (const auto& line : parse_cgroup_lines(cgroup)) {
    if (!line.unified && !has_element(line.controllers, "cpu")) continue;
    const auto mount = find_cgroup_mount(mountinfo, line.unified ? "" : "cpu");
    if (!mount) continue;
    std::string below = below_mount(*mount, line.path).value_or("");
    for (;;) {
      result.push_back({mount->point + below, line.unified});
      if (below.empty()) break;
      below.resize(below.rfind('/'));
    }
  }
  return result;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return {};
  const auto quota = parse_positive(text.substr(0, blank));  // "max": no limit
  const auto period = parse_positive(text.substr(blank + 1));
  if (!quota || !period) return {};
  return *quota / *period;
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  const auto time = parse_positive(quota);
  const auto every = parse_positive(period);
  if (!time || !every) return {};
  return *time / *every;
}

int count_usable_cpus(std::size_t cpus, std::optional<double> quota) {
  const auto all = static_cast<double>(cpus);
  return std::max(1, static_cast<int>(std::min(all, quota.value_or(all))));  // rounds down
}

std::vector<int> own_affinity() {
  // The kernel wants a mask at least as large as its own: grow until it fits.
  for (std::size_t cpus = 1024; cpus <= 1U << 20U; cpus *= 4) {
    std::vector<unsigned long> words(cpus / (8 * sizeof(unsigned long)));
    auto* const mask = reinterpret_cast<cpu_set_t*>(words.data());
    const std::size_t bytes = words.size() * sizeof(unsigned long);
    if (::sched_getaffinity(0, bytes, mask) == 0) {
      std::vector<int> result;
      for (std::size_t cpu = 0; cpu < cpus; ++cpu) {
        if (CPU_ISSET_S(cpu, bytes, mask)) result.push_back(static_cast<int>(cpu));
      }
      return result;
    }
    if (errno != EINVAL) break;
  }
  throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
}

std::optional<double> read_cpu_quota(const std::string& root) {
  const auto cgroup = read_small_file(root + "/proc/self/cgroup");
  const auto mountinfo = read_small_file(root + "/proc/self/mountinfo");
  if (!cgroup || !mountinfo) return {};
  std::optional<double> lowest;
  for (const auto& folder : quota_folders(*cgroup, *mountinfo)) {
    std::optional<double> quota;
    const std::string path = root + folder.path;
    if (folder.version_2) {
      if (const auto text = read_small_file(path + "/cpu.max")) quota = parse_cpu_max(*text);
    } else {
      const auto time = read_small_file(path + "/cpu.cfs_quota_us");
      const auto period = read_small_file(path + "/cpu.cfs_period_us");
      if (time && period) quota = parse_cfs_quota(*time, *period);
    }
    if (quota && (!lowest || *quota < *lowest)) lowest = quota;
  }
  return lowest;
}

std::optional<std::vector<int>> read_allowed_memory_nodes(const std::string& root) {
  const auto status = read_small_file(root + "/proc/self/status");
  if (!status) return {};
  constexpr std::string_view kName = "\nMems_allowed_list:";
  const auto at = status->find(kName);
  if (at == std::string::npos) return {};
  const auto begin = at + kName.size();
  const auto end = std::min(status->find('\n', begin), status->size());
  auto nodes = parse_cpu_list(std::string_view(*status).substr(begin, end - begin));
  if (!nodes) return {};
  return std::move(*nodes);
}

}  // namespace drun
