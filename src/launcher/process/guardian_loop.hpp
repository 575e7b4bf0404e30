// What runs inside the guardian process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/file_descriptor.hpp"
#include "launcher/process/cgroup.hpp"
#include "launcher/process/channel.hpp"
#include "launcher/process/child_signals.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/excuse.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/last_will.hpp"
#include "launcher/process/lease.hpp"
#include "launcher/process/spawn_pool.hpp"
#include "launcher/process/timer_fd.hpp"

namespace drun::process {

// What the agent is told was tried, for a worker that a stop or the end of the lease kept from
// starting.
inline constexpr const char* kStartUnleased = "start a worker while the store is out of reach";
inline constexpr const char* kStartCancelled = "start a worker while the others are being stopped";

// At the end of a lease the guardian has so long to begin with the killing, and between two signs
// of life while it kills. Then its watchdog does it.
inline constexpr std::chrono::milliseconds kGuardianLate{700};

// A stop under way: first the grace, then the killing.
struct StopUnderWay {
  int signal = 0;
  BootTime signalled{};                            // when it was sent last
  std::unordered_set<pid_t> unprepared;            // leaders that neither catch nor ignore it
  std::unordered_set<pid_t> orphaned;              // their groups, if it ended them: others live on
  std::chrono::steady_clock::time_point deadline;  // of the grace
  std::optional<KillLimit> killing;                // after it
  std::unordered_set<pid_t> killed;                // were sent SIGKILL
  std::uint32_t count = 0;                         // died of it
  bool asked_for = false;                          // by the agent, who is told of the end
};

// The guardian's main thread; the others only start programs for it, so that it never waits for
// one. Every signal is blocked; it sleeps in poll until the agent speaks, a program runs, a child
// ends, or a grace or the lease is over.
class GuardianLoop {
 public:
  // `excuse` is for the watchdog. It outlives this, as the other references do.
  GuardianLoop(FileDescriptor agent, const GuardianOptions& options, const CgroupPaths& place,
               const Excuse& excuse);

  // Returns when the agent is gone. Kills nothing: that is the caller's next step.
  void run();
  // After run(): from here on no process begins.
  void end_spawns();
  // The agent was not killed: it waits for both helpers, and needs the watchdog's word.
  [[nodiscard]] bool ended_in_order() const { return ended_in_order_; }
  // What to do when nothing is left.
  [[nodiscard]] const LastWill& will() const { return will_; }
  // The workers' cgroup, or null.
  [[nodiscard]] const WorkerCgroup* group() const { return group_ ? &*group_ : nullptr; }

 private:
  using Clock = std::chrono::steady_clock;

  // The variables of all workers.
  struct SharedEnvironment {
    std::string text;
    std::vector<char*> variables;  // in `text`
  };
  void set_up_cgroups();
  void enter_next_group();
  // A worker that is being started, and the memory that its plan points into.
  struct Starting {
    std::unique_ptr<std::string> payload;
    std::vector<FileDescriptor> descriptors;
    std::shared_ptr<SharedEnvironment> environment;
    std::vector<int> signals;   // that came meanwhile
    std::optional<Reaped> end;  // it has ended already
    bool forgotten = false;     // the stop of its round is over
  };

  template <typename Take>
  [[nodiscard]] bool read_agent(Take take);
  void hear_last_words();
  void hear(const GuardianFrame& frame);
  void handle(GuardianFrame frame);
  void handle_environment(std::string_view payload);
  void handle_spawn(GuardianFrame frame);
  // Nothing if it cannot be started; the agent is told.
  [[nodiscard]] std::optional<SpawnPlan> plan(Starting& starting, const GuardianFrame& frame,
                                              WorkerId& id);
  void fail(WorkerId id, int error, std::string attempted);
  // As fail(), for a function that was to return something.
  std::nullopt_t refuse(WorkerId id, int error, std::string attempted);
  void take_started();
  void on_started(WorkerId id, const SpawnResult& result);
  void signal_all(int signal);
  void signal_group(pid_t leader, int signal);
  void signal_groups(int signal);
  void note_answer(pid_t leader);
  void signal_outside_groups(int signal) const;
  void renew(BootTime end);
  void keep_lease();
  void begin_stop(int signal, std::chrono::milliseconds grace, bool asked_for);
  void handle_stop(int signal, std::chrono::milliseconds grace);
  void cancel_spawns();
  [[nodiscard]] bool is_owing() const;
  void signal_late_children();
  void signal_missed();
  [[nodiscard]] bool is_starting() const;
  void reap();
  void on_reaped(const Reaped& reaped);
  [[nodiscard]] bool killed_here(pid_t pid, const ExitStatus& status) const;
  void on_exit(WorkerId id, const Reaped& worker);
  void advance_stop();
  void kill_pass();
  void finish_stop(const std::vector<pid_t>& remaining);
  void signal_everything(int signal);
  void emit(const GuardianEvent& event);
  void excuse_itself() const;
  [[nodiscard]] int poll_timeout() const;

  Channel agent_;
  ChildSignals child_signals_;
  FileDescriptor null_;
  const GuardianOptions& options_;
  const CgroupPaths& place_;
  const Excuse& excuse_;
  SpawnPool spawners_;
  std::unordered_map<WorkerId, Starting> starting_;
  std::optional<WorkerCgroup> group_;
  OutOfMemoryCount out_of_memory_;
  std::shared_ptr<SharedEnvironment> shared_environment_;
  std::unordered_map<WorkerId, pid_t> workers_;  // alive
  std::unordered_map<pid_t, WorkerId> ids_;
  bool any_child_ = false;
  bool only_hanging_ = false;  // whatever lives was killed, and does not die of it
  std::optional<StopUnderWay> stop_;
  LastWill will_;
  bool ended_in_order_ = false;
  RunLease lease_;
  TimerFd lease_timer_{CLOCK_BOOTTIME};
};

// The cgroup for the workers of this guardian, not made yet; nothing if none may be made.
[[nodiscard]] std::optional<WorkerCgroup> worker_cgroup(const GuardianOptions& options,
                                                        const CgroupPaths& place);

// Kills everything below this process, which must have no other children, and removes the group, if
// any. With kKillLimit it takes no longer than kLongestKilling; with none it kills and does not
// wait. True when nothing is left.
bool kill_job(const WorkerCgroup* group, std::chrono::milliseconds limit);

// The whole life of the guardian process, from just after its fork by the watchdog, which has cut
// itself loose (detach()) and knows its `place`. Never returns; its exit code is
// the errno of what it could not do, 0 if it ended because the agent was gone: then it has killed
// everything that SIGKILL ends, and has done the agent's last will.
[[noreturn]] void guardian_main(FileDescriptor agent, const GuardianOptions& options,
                                const CgroupPaths& place, pid_t watchdog,
                                const Excuse& excuse) noexcept;

}  // namespace drun::process
