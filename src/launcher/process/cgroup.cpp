#include "launcher/process/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/cgroup_mounts.hpp"
#include "base/small_file.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::process {
namespace {

// Between two attempts to remove a group whose processes are still dying.
constexpr int kRemoveIntervalMs = 5;

// Empty if no mount shows it.
std::string directory_of(const std::optional<CgroupMount>& mount, std::string_view path) {
  if (!mount) return {};
  const auto below = below_mount(*mount, path);
  return below ? mount->point + *below : "";
}

bool has_delegate_mark(const std::string& directory) {
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    char value[8];
    if (::getxattr(directory.c_str(), name, value, sizeof value) == 1 && value[0] == '1')
      return true;
  }
  return false;
}

bool remove_tree(const std::string& path) {
  if (::rmdir(path.c_str()) == 0) return true;
  {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
    if (!directory) return errno == ENOENT;
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (entry->d_type == DT_DIR && name != "." && name != "..")
        remove_tree(path + "/" + entry->d_name);
    }
  }
  return ::rmdir(path.c_str()) == 0;
}

}  // namespace

CgroupPaths find_cgroups(std::string_view cgroup, std::string_view mountinfo) {
  CgroupPaths place;
  for (const auto& line : parse_cgroup_lines(cgroup)) {
    if (line.unified) {
      place.unified = directory_of(find_cgroup_mount(mountinfo, ""), line.path);
      place.unified_is_top = !place.unified.empty() && line.path == "/";
    } else if (has_element(line.controllers, "memory")) {
      place.memory_v1 = directory_of(find_cgroup_mount(mountinfo, "memory"), line.path);
    }
  }
  return place;
}

CgroupPaths find_cgroups() {
  const auto cgroup = read_small_file("/proc/self/cgroup");
  const auto mountinfo = read_small_file("/proc/self/mountinfo");
  return cgroup && mountinfo ? find_cgroups(*cgroup, *mountinfo) : CgroupPaths();
}

std::optional<std::string> find_delegated(const CgroupPaths& place) {
  if (place.unified.empty() || ::access(place.unified.c_str(), W_OK) != 0) return std::nullopt;
  struct stat status {};
  if (::stat(place.unified.c_str(), &status) != 0) return std::nullopt;
  const uid_t user = ::geteuid();
  // Root can write everywhere, so only a mark says that the directory was meant for us. The top of
  // the hierarchy is delegated to nobody, and making a group there costs every start milliseconds.
  const bool ours =
      user != 0 ? status.st_uid == user : !place.unified_is_top && has_delegate_mark(place.unified);
  if (!ours) return std::nullopt;
  return place.unified;
}

bool WorkerCgroup::next_round() {
  if (directory_) {
    remove_tree(round_path_);
  } else {
    if (::mkdir(path_.c_str(), 0755) != 0) return false;
  }
  round_path_ = path_ + "/" + std::to_string(round_++);
  if (::mkdir(round_path_.c_str(), 0755) != 0) return false;
  directory_.reset(::open(round_path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return directory_.valid();
}

bool WorkerCgroup::kill() const {
  return write_small_file((directory_ ? round_path_ : path_) + "/cgroup.kill", "1");
}

bool WorkerCgroup::remove(std::chrono::milliseconds limit) const {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!remove_tree(path_)) {
    if (errno != EBUSY || std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, kRemoveIntervalMs);
  }
  return true;
}

std::optional<std::uint64_t> flat_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') != key) continue;
    if (const auto value = whole_number<std::uint64_t>(line)) return value;
  }
  return std::nullopt;
}

OutOfMemoryCount::OutOfMemoryCount(const CgroupPaths& place) {
  for (const auto& file :
       {place.unified + "/memory.events", place.memory_v1 + "/memory.oom_control"}) {
    const auto text = read_small_file(file);
    if (!text) continue;
    const auto count = flat_value(*text, "oom_kill");
    if (!count) continue;
    file_ = file;
    taken_ = *count;
    return;
  }
}

std::uint64_t OutOfMemoryCount::read() const {
  if (file_.empty()) return taken_;
  const auto text = read_small_file(file_);
  return text ? flat_value(*text, "oom_kill").value_or(taken_) : taken_;
}

bool OutOfMemoryCount::take() {
  if (read() <= taken_) return false;
  ++taken_;
  return true;
}

void OutOfMemoryCount::forget() {
  taken_ = std::max(taken_, read());
}

}  // namespace drun::process
