#include "base/cgroup_mounts.hpp"

#include <charconv>

#include "base/split.hpp"

namespace drun {
namespace {

// mountinfo writes a blank and the like as a backslash and three octal digits.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
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

}  // namespace

std::vector<CgroupLine> parse_cgroup_lines(std::string_view cgroup) {
  std::vector<CgroupLine> result;
  while (!cgroup.empty()) {
    std::string_view rest = take_until(cgroup, '\n');
    CgroupLine line;
    const auto hierarchy = take_until(rest, ':');
    line.controllers = take_until(rest, ':');
    line.path = rest;
    line.unified = hierarchy == "0" && line.controllers.empty();
    if (line.path.starts_with('/') && (line.unified || !line.controllers.empty()))
      result.push_back(line);
  }
  return result;
}

// "36 35 98:0 /root /point options optional... - type source super-options"
std::optional<CgroupMount> find_cgroup_mount(std::string_view mountinfo,
                                             std::string_view controller) {
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view tail = line.substr(dash + 3);
    const auto type = take_until(tail, ' ');
    take_until(tail, ' ');
    const bool fits =
        controller.empty() ? type == "cgroup2" : type == "cgroup" && has_element(tail, controller);
    if (!fits) continue;
    for (int i = 0; i < 3; ++i)
      take_until(line, ' ');
    CgroupMount mount;
    mount.root = unescaped(take_until(line, ' '));
    mount.point = unescaped(take_until(line, ' '));
    if (mount.root.starts_with('/') && mount.point.starts_with('/')) return mount;
  }
  return std::nullopt;
}

std::optional<std::string> below_mount(const CgroupMount& mount, std::string_view cgroup_path) {
  if (cgroup_path.empty() || cgroup_path.find("/..") != std::string_view::npos) return std::nullopt;
  if (mount.root != "/") {
    if (!cgroup_path.starts_with(mount.root)) return std::nullopt;
    cgroup_path.remove_prefix(mount.root.size());
    if (!cgroup_path.empty() && cgroup_path.front() != '/') return std::nullopt;
  }
  return cgroup_path == "/" ? "" : std::string(cgroup_path);
}

}  // namespace drun
