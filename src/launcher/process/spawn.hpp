// Starts one program. The only place that creates a worker.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace drun::process {

// What to start. All pointers are borrowed until spawn() is over.
struct SpawnPlan {
  std::vector<char*> argv;               // without the closing null; not empty
  std::vector<char*> environment;        // without the closing null
  std::array<int, 3> streams{};          // descriptors for 0, 1, 2
  int service = -1;                      // for 3; -1: none
  std::vector<unsigned long> cpu_mask;   // bit n: CPU n; empty: as the parent's
  std::vector<unsigned long> node_mask;  // bit n: memory of NUMA node n; empty: as the parent's
};

struct SpawnResult {
  pid_t pid = 0;          // 0: failed
  int error = 0;          // errno
  std::string attempted;  // "exec /x/y", "fork"
};

// The paths to try for `program`, in order: `program` itself if it holds a '/', else one for each
// element of `path` (an empty element is the working directory).
[[nodiscard]] std::vector<std::string> exec_candidates(std::string_view program,
                                                       std::string_view path);

// SpawnResult::attempted: no process could be made, whatever the program.
inline constexpr const char* kFork = "fork";

// Used if PATH is not set at all.
inline constexpr std::string_view kDefaultPath = "/bin:/usr/bin";

// Starts programs from a small process whose signal dispositions are all default
// and whose signals are all blocked: so that the child shares its memory until the exec and needs
// neither a copy of it nor a pipe for its errors. One thread, which must outlive what it starts.
//
// The child: own process group, SIGKILL when the parent dies, no signal blocked, no
// descriptor but 0, 1, 2 and that of a service.
class Spawner {
 public:
  Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  // Returns when the program runs, or cannot: never, if the program's file system hangs. The child
  // of a program that cannot run is not waited for: the code that collects this process's children
  // gets it.
  SpawnResult spawn(SpawnPlan plan);
  // The child of the spawn() that is under way; 0 while there is none. For any thread: no child can
  // be waited for before it is known here.
  [[nodiscard]] pid_t child() const { return child_; }
  // The last result was taken note of.
  void forget_child() { child_ = 0; }

  // Whether the kernel starts a process inside this cgroup directory, and does not kill it at once.
  bool can_start_in(int directory);
  // Programs start there from now on; -1: where their parent is.
  void start_in(int directory) { cgroup_ = directory; }

 private:
  pid_t create_child(void* context);

  void* stack_ = nullptr;
  void* shared_ = nullptr;  // a page that a child which has its own memory shares with its parent
  int cgroup_ = -1;
  std::atomic<pid_t> child_{0};  // which the kernel writes
};

}  // namespace drun::process
