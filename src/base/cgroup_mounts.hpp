// Where a process's control groups are in the file system, from the text of /proc/PID/cgroup and
// /proc/PID/mountinfo. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun {

// A line of /proc/PID/cgroup: "hierarchy:controllers:path". Views of the text.
struct CgroupLine {
  std::string_view controllers;  // with commas between; of version 1
  std::string_view path;         // from the root of the hierarchy
  bool unified = false;          // version 2

  bool operator==(const CgroupLine&) const = default;
};
// Malformed lines are left out.
[[nodiscard]] std::vector<CgroupLine> parse_cgroup_lines(std::string_view cgroup);

struct CgroupMount {
  std::string root;   // which directory of the hierarchy is mounted
  std::string point;  // where

  bool operator==(const CgroupMount&) const = default;
};
// Of version 1's hierarchy with this controller, or of version 2's if `controller` is empty.
[[nodiscard]] std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo,
                                                           std::string_view controller);

// What comes after the mount point in the path of this cgroup's directory: "" or "/a/b". Nothing if
// the mount does not show it because it belongs to another namespace.
[[nodiscard]] std::optional<std::string> below_mount(const CgroupMount& mount,
                                                     std::string_view cgroup_path);

}  // namespace drun
