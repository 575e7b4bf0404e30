// Control groups: where this process may make one of its own (cgroup v2), the workers live in it,
// because the kernel kills such a group as a whole, faster than anything in it can fork. And the
// kernel counts there which processes died for want of memory (v2, and v1's memory controller).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/base/file_descriptor.hpp"

namespace drun::process {

// Where this process is in the cgroup hierarchies, as paths of directories; empty: not known.
struct CgroupPlace {
  std::string unified;    // cgroup v2
  std::string memory_v1;  // the memory controller of cgroup v1
  // The v2 directory is the top of what this process sees: of the system, or of its container.
  bool unified_is_top = false;

  bool operator==(const CgroupPlace&) const = default;
};
// Pure: from the text of /proc/self/cgroup and /proc/self/mountinfo.
[[nodiscard]] CgroupPlace find_cgroups(std::string_view cgroup, std::string_view mountinfo);
[[nodiscard]] CgroupPlace find_cgroups();

// The v2 directory in which this process may make groups: it is delegated to it (owned by its user;
// for root, marked as delegated by systemd, or the top of what it sees). Nothing where there is
// none.
[[nodiscard]] std::optional<std::string> find_delegated(const CgroupPlace& place);

// One group for the workers of one guardian. Both the guardian and the keeper hold one of the same
// name; whoever ends last removes it.
class WorkerGroup {
 public:
  // The name is made of the guardian's process id. Nothing exists yet.
  WorkerGroup(const std::string& parent, pid_t guardian);

  // False where the directory cannot be made.
  bool create();
  // For CLONE_INTO_CGROUP; -1 unless created.
  [[nodiscard]] int fd() const { return directory_.get(); }
  // SIGKILL to everything in it and in the groups below. False where there is no such group, or the
  // kernel (before 5.14) cannot.
  [[nodiscard]] bool kill() const;
  // With the groups that workers made in it. Fails while a process lives in it.
  bool remove() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor directory_;
};

// The number after `key` in lines of "key number".
[[nodiscard]] std::optional<std::uint64_t> flat_value(std::string_view text, std::string_view key);

// How many processes the kernel has killed for want of memory, in the groups given to it.
class OutOfMemoryCount {
 public:
  OutOfMemoryCount() = default;
  // Starts from what is counted now.
  explicit OutOfMemoryCount(const CgroupPlace& place);

  // True when the kernel has killed one more process than was taken so far. Call it once for each
  // process that died of SIGKILL.
  bool take();
  // Forgets what was not taken.
  void forget();

 private:
  [[nodiscard]] std::uint64_t read() const;

  std::string file_;
  std::uint64_t taken_ = 0;
};

}  // namespace drun::process
