// What runs inside the guardian process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "drun/base/file_descriptor.hpp"
#include "launcher/process/cgroup.hpp"
#include "launcher/process/channel.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/spawn_pool.hpp"

namespace drun::process {

// A stop under way: first the grace, then the killing.
struct StopUnderWay {
  std::chrono::steady_clock::time_point deadline;  // of the grace
  std::optional<KillLimit> killing;                // after it
  std::unordered_set<pid_t> killed;                // were sent SIGKILL
  std::uint32_t count = 0;                         // died of it
};

// The guardian's main thread; the others only start programs for it. Every signal is blocked; it
// sleeps in poll until the agent speaks, a child ends, or a grace is over.
class GuardianLoop {
 public:
  GuardianLoop(FileDescriptor agent, const GuardianOptions& options);

  // Returns when the agent is gone. Kills nothing: that is the caller's next step.
  void run();
  // The workers' cgroup, or null.
  [[nodiscard]] const WorkerCgroup* group() const { return group_ ? &*group_ : nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  void set_up_cgroups();
  void enter_next_group();
  // A worker to be started, and the memory that its plan points into.
  struct Pending {
    std::string payload;
    std::vector<FileDescriptor> descriptors;
    bool descriptors_missing = false;
  };

  [[nodiscard]] bool read_agent();
  // Nothing if it cannot be started; the agent is told.
  [[nodiscard]] std::optional<SpawnPlan> plan(Pending& pending, WorkerId& id);
  void handle(Frame frame);
  void handle_environment(std::string_view payload);
  void start_pending();
  void handle_stop(int signal, std::chrono::milliseconds grace);
  void reap();
  void advance_stop();
  void kill_pass();
  void finish_stop(const std::vector<pid_t>& remaining);
  void signal_everything(int signal);
  void emit(const GuardianEvent& event);
  [[nodiscard]] int poll_timeout() const;

  Channel agent_;
  FileDescriptor child_signals_;
  FileDescriptor null_;
  const GuardianOptions& options_;
  const std::size_t most_pending_;
  SpawnPool spawners_;
  std::vector<Pending> pending_;
  std::optional<WorkerCgroup> group_;
  OutOfMemoryCount out_of_memory_;
  std::string shared_text_;                      // the environment that all workers share...
  std::vector<char*> shared_environment_;        // ...variable by variable
  std::unordered_map<WorkerId, pid_t> workers_;  // alive
  std::unordered_map<pid_t, WorkerId> ids_;
  bool any_child_ = false;
  std::optional<StopUnderWay> stop_;
};

// The cgroup for the workers of this guardian, not made yet; nothing if none may be made.
[[nodiscard]] std::optional<WorkerCgroup> worker_cgroup(const GuardianOptions& options,
                                                        const CgroupPaths& place, pid_t guardian);

// Kills everything below this process, which must have no other children, and removes the group, if
// any. Takes no longer than kLongestKilling.
void kill_job(const WorkerCgroup* group);

// The whole life of the guardian process, from just after its fork. Never returns; its exit code is
// the errno of what it could not do, 0 if it ended because the agent was gone.
[[noreturn]] void guardian_main(FileDescriptor agent, const GuardianOptions& options) noexcept;

}  // namespace drun::process
