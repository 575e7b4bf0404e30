// What the workers of a node leave in /dev/shm when they are killed: found while they live, removed
// when they are gone. A file is removed only if all of this is true, so that none that another job
// or the user still counts on can be meant:
// - Its name is one that a library makes up for itself (see is_scratch_name()): no program finds it
//   again after a restart.
// - It is a regular file of this user, with one name, and was not there at begin().
// - A process below `root` was seen to have it open or mapped.
// - The kernel grants a lease for writing: no process has it open or mapped any more, in whatever
//   container or namespace.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drun::process {

// Of torch, NCCL, Python's multiprocessing, OpenMP, CUDA, UCX or MPICH: random, or with the number
// of the process.
[[nodiscard]] bool is_scratch_name(std::string_view name);

// One thread at a time. No call waits for a process, but reading what a process has mapped may take
// as long as the kernel is busy with that: not for a loop.
class SharedMemory {
 public:
  // `keep`: patterns (fnmatch(3)) of names that are never removed.
  explicit SharedMemory(std::vector<std::string> keep, std::string folder = "/dev/shm");

  // What is there now is not the workers', even if one opens it later.
  void begin();
  // Looks which of the new files the processes below `root` have; how many are known to be theirs.
  // Files of which nobody below has been found to have them are others', after some looks.
  [[nodiscard]] std::size_t look(pid_t root);

  struct Swept {
    std::vector<std::string> names;
    std::uint64_t bytes = 0;
  };
  // Removes those of them that nobody has any more; the others stay known. `root` is gone.
  [[nodiscard]] Swept sweep();

 private:
  using File = std::pair<ino_t, std::string>;  // the name alone may be used again

  enum class Whose { Anybodys, Ours };

  [[nodiscard]] std::set<File> present(Whose whose) const;
  [[nodiscard]] bool keeps(const std::string& name) const;
  [[nodiscard]] std::set<ino_t> held_below(pid_t root, const std::set<ino_t>& wanted) const;
  void note_files(pid_t pid, const std::set<ino_t>& wanted, std::set<ino_t>& held) const;
  void note_maps(pid_t pid, const std::set<ino_t>& wanted, std::set<ino_t>& held) const;
  [[nodiscard]] bool remove(const File& file, Swept& swept) const;

  const std::vector<std::string> keep_;
  const std::string folder_;
  dev_t device_ = 0;
  std::set<File> others_;
  std::set<File> own_;
  std::map<File, int> looks_;  // of files that nobody is known to have
};

}  // namespace drun::process
