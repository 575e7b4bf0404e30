// The CPUs that this process may use: its affinity mask (which a cpuset has already narrowed) and
// its cgroups' CPU quota, version 1 and 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// `root` of the readers below is put in front of each path: "" for this machine.

// ---- pure ----

// A cgroup folder, and which version's quota files it holds.
struct QuotaFolder {
  std::string path;
  bool version_2 = false;

  bool operator==(const QuotaFolder&) const = default;
};

// The folders whose CPU quota binds this process: its own cgroup and all those above it, from
// /proc/self/cgroup and /proc/self/mountinfo. A cgroup that is not under what is mounted (another
// namespace's) stands for the mount point itself.
[[nodiscard]] std::vector<QuotaFolder> quota_folders(std::string_view cgroup,
                                                     std::string_view mountinfo);

// cpu.max ("150000 100000") as a number of CPUs; nullopt: no limit, or not readable as one.
[[nodiscard]] std::optional<double> parse_cpu_max(std::string_view text);
// cpu.cfs_quota_us and cpu.cfs_period_us of version 1; a quota of -1 is no limit.
[[nodiscard]] std::optional<double> parse_cfs_quota(std::string_view quota,
                                                    std::string_view period);

// How many of `cpus` CPUs a process can keep busy: the quota is rounded down, the result is at
// least 1.
[[nodiscard]] int count_usable_cpus(std::size_t cpus, std::optional<double> quota);

// ---- readers ----

struct UsableCpus {
  std::vector<int> cpus;        // of the affinity mask, ascending; never empty
  std::optional<double> quota;  // CPUs' worth of time

  [[nodiscard]] int count() const { return count_usable_cpus(cpus.size(), quota); }
};

// Throws std::system_error when the kernel does not tell the affinity mask.
[[nodiscard]] std::vector<int> own_affinity();
// The lowest quota of all folders.
[[nodiscard]] std::optional<double> read_cpu_quota(const std::string& root);
// NUMA nodes that this process may allocate on, from /proc/self/status; nullopt: not told.
[[nodiscard]] std::optional<std::vector<int>> read_allowed_memory_nodes(const std::string& root);

}  // namespace drun
