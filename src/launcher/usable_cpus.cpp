#include "launcher/usable_cpus.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "drun/base/file_descriptor.hpp"
#include "launcher/cpu_list.hpp"

namespace drun::launcher {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    if (end > begin) result.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

bool has_item(std::string_view list, std::string_view item) {
  const auto items = split(list, ',');
  return std::find(items.begin(), items.end(), item) != items.end();
}

// mountinfo writes blanks and backslashes as octal escapes.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr ==
            text.data() + i + 4) {
      result += static_cast<char>(code);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

struct Mount {
  std::string root;  // the folder of the hierarchy that is mounted
  std::string point;
};

// A line: id parent major:minor ROOT POINT options [tags...] - TYPE source SUPEROPTIONS
std::optional<Mount> find_mount(std::string_view mountinfo, bool version_2) {
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto front = split(line.substr(0, dash), ' ');
    const auto back = split(line.substr(dash + 3), ' ');
    if (front.size() < 5 || back.size() < 2) continue;
    const bool fits =
        version_2 ? back[0] == "cgroup2" : back[0] == "cgroup" && has_item(back.back(), "cpu");
    if (fits) return Mount{unescaped(front[3]), unescaped(front[4])};
  }
  return {};
}

void add_folders(const Mount& mount, std::string_view cgroup, bool version_2,
                 std::vector<QuotaFolder>& result) {
  const std::string base = mount.root == "/" ? "" : mount.root;
  std::string below;  // the mount point
  if (cgroup.size() > base.size() && cgroup.starts_with(base) && cgroup[base.size()] == '/') {
    below = cgroup.substr(base.size());
  }
  if (below == "/" || below.find("/..") != std::string::npos) below.clear();
  for (;;) {
    result.push_back({mount.point + below, version_2});
    if (below.empty()) return;
    below.resize(below.rfind('/'));
  }
}

std::optional<double> parse_positive(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.remove_suffix(1);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  if (value <= 0) return {};
  return static_cast<double>(value);
}

}  // namespace

std::vector<QuotaFolder> quota_folders(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<QuotaFolder> result;
  for (const auto line : split(cgroup, '\n')) {  // hierarchy:controllers:path
    const auto first = line.find(':');
    const auto second = line.find(':', first == std::string_view::npos ? first : first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool version_2 = controllers.empty();
    if (!version_2 && !has_item(controllers, "cpu")) continue;
    if (const auto mount = find_mount(mountinfo, version_2)) {
      add_folders(*mount, line.substr(second + 1), version_2, result);
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

std::optional<std::string> read_small_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  std::string result;
  char buffer[4096];
  for (;;) {
    const auto n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return {};
    if (n == 0) return result;
    result.append(buffer, static_cast<std::size_t>(n));
  }
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

UsableCpus read_usable_cpus(const std::string& root) {
  return {own_affinity(), read_cpu_quota(root)};
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

}  // namespace drun::launcher
