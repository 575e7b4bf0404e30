// Control groups. If this process may make one of its own (cgroup v2), the workers live in it: the
// kernel kills such a group as a whole, faster than anything in it can fork. The kernel also counts
// there the processes that died for lack of memory (v2, and v1's memory controller).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.hpp"

namespace drun::process {

// Where this process is in the cgroup hierarchies, as paths of directories; empty: not known.
struct CgroupPaths {
  std::string unified;    // cgroup v2
  std::string memory_v1;  // the memory controller of cgroup v1
  // The v2 directory is the top of what this process sees: of the system, or of its container.
  bool unified_is_top = false;

  bool operator==(const CgroupPaths&) const = default;
};
// Pure: from the text of /proc/self/cgroup and /proc/self/mountinfo.
[[nodiscard]] CgroupPaths find_cgroups(std::string_view cgroup, std::string_view mountinfo);
[[nodiscard]] CgroupPaths find_cgroups();

// The v2 directory in which this process may make groups: one that is delegated to it (owned by its
// user; for root, marked as delegated by systemd and not the top of what it sees). Nothing if there
// is none.
[[nodiscard]] std::optional<std::string> find_delegated(const CgroupPaths& place);

// The group for the workers of one guardian, and in it one after the other the groups of its
// rounds: a kernel may kill at once what is started into a group that was killed before. Guardian
// and watchdog each hold an object of the same name; only the guardian makes the directories, the
// one that ends last removes them.
class WorkerCgroup {
 public:
  // `name` is nobody else's: whatever is in such a group gets killed. Nothing exists yet.
  WorkerCgroup(const std::string& parent, const std::string& name) : path_(parent + "/" + name) {}

  // Makes the group and that of the first round, or removes a round's group, in which nothing
  // lives, and makes that of the next. False if a directory cannot be made.
  bool next_round();
  // The round's directory, for CLONE_INTO_CGROUP; -1 before the first.
  [[nodiscard]] int fd() const { return directory_.get(); }
  // SIGKILL to everything in the round's group; if this object made none, in the whole group. False
  // if there is no group, or if the kernel (before 5.14) cannot do it.
  bool kill() const;
  // All of it, with the groups that workers made. While a process is left in it, tries again until
  // `limit` is over. True when it is gone.
  bool remove(std::chrono::milliseconds limit) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string round_path_;
  unsigned round_ = 0;
  FileDescriptor directory_;
};

// The number after `key` in lines of "key number".
[[nodiscard]] std::optional<std::uint64_t> flat_value(std::string_view text, std::string_view key);

// How many processes the kernel has killed for want of memory, in the groups given to it.
class OutOfMemoryCount {
 public:
  OutOfMemoryCount() = default;
  // Starts from what is counted now.
  explicit OutOfMemoryCount(const CgroupPaths& place);

  // True when the kernel has killed one more process than was taken so far. Call it once for each
  // process that died of SIGKILL.
  bool take();
  // Forgets the deaths that were not taken.
  void forget();

 private:
  [[nodiscard]] std::uint64_t read() const;

  std::string file_;
  std::uint64_t taken_ = 0;
};

}  // namespace drun::process
