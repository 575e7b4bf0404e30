// The guardian: a small process between the agent and its workers. It is the workers' parent and a
// child subreaper; the agent asks it to spawn, signal and stop, and hears of exits at once. When
// the agent dies, by SIGKILL too, the guardian kills every worker and every descendant, including
// those that changed session, and exits.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file_descriptor.hpp"
#include "drun/base/result.hpp"
#include "launcher/process/exit_status.hpp"
#include "launcher/process/farewell.hpp"
#include "launcher/process/usage.hpp"

namespace drun::process {

using WorkerId = std::uint32_t;  // chosen by the agent, unique for the guardian's life

// Where a worker finds the descriptor of a service that the agent has for it.
inline constexpr int kServiceDescriptor = 3;

// One worker to start. Descriptors that are not given become /dev/null.
struct SpawnRequest {
  WorkerId id = 0;
  std::vector<std::string> argv;  // argv[0] is looked up in the worker's PATH, as a shell does
  // "NAME=value", beside what share_environment() gave; no name may be in both.
  std::vector<std::string> environment;
  FileDescriptor standard_input;
  FileDescriptor standard_output;
  FileDescriptor standard_error;
  // kServiceDescriptor in the worker, and in what it starts; not given: that is closed.
  FileDescriptor service;
  // CPUs that it is bound to before it starts; empty: the agent's own. None of them usable: the
  // error is EINVAL.
  std::vector<int> cpu_affinity;
  // NUMA nodes whose memory is preferred; empty: the system's default. What the kernel or a
  // container does not allow is left out silently.
  std::vector<int> memory_nodes;
};

struct Spawned {
  WorkerId id = 0;
  pid_t pid = 0;
};
struct SpawnFailed {
  WorkerId id = 0;
  int error = 0;          // errno
  std::string attempted;  // "exec /x/y", "fork"
};
struct Exited {
  WorkerId id = 0;
  pid_t pid = 0;
  ExitStatus status;
  // The kernel killed it (SIGKILL) for want of memory, as far as the cgroup's counter tells.
  bool out_of_memory = false;
  bool killed_by_stop = false;  // of the SIGKILL of a stop, or of the end of the lease
  Usage usage{};
};
// A stop is complete: no process that the workers started is left. `killed` counts those that
// needed SIGKILL. `remaining` is 0 unless SIGKILL did not end some within kKillLimit (twice that
// while others still died): those hang inside the kernel (a dead network file system, a driver),
// run as another user, or are dead and held by a debugger. `first` is one of them, 0 if none was
// seen any more.
struct Stopped {
  std::uint32_t killed = 0;
  std::uint32_t remaining = 0;
  pid_t first = 0;
};
// The lease was not renewed in time: the guardian is killing the workers, or has not started one.
struct LeaseOver {};
// The guardian itself ended, although nobody asked it to, or could not be started at all.
struct GuardianLost {
  ExitStatus status;
  int start_error = 0;  // errno
  bool hung = false;    // it was killed because it did not do what it was told
};

// "exit code 7", "killed by SIGSEGV", "killed: out of memory".
[[nodiscard]] std::string describe(const Exited& exited);
// As sentences; that of Stopped is empty if nothing remains.
[[nodiscard]] std::string describe(const Stopped& stopped);
[[nodiscard]] std::string describe(const GuardianLost& lost);

using GuardianEvent = std::variant<Spawned, SpawnFailed, Exited, Stopped, LeaseOver, GuardianLost>;

struct GuardianOptions {
  // The workers' limit of open descriptors, if the agent has raised its own before start().
  std::optional<rlimit> open_files;
  // If a cgroup (v2) is delegated to this process, the workers live in a group below it, which the
  // kernel kills as a whole. If `cgroup_parent` is set, their group is below that directory
  // instead.
  bool use_cgroup = true;
  std::string cgroup_parent;
  // Of their group; empty: one that nobody else uses. All of drun's processes know it, also those
  // that other sandboxes number alike.
  std::string cgroup_name;
};

// What an agent asks for its workers. In production a Guardian carries it out; tests put a fake in
// its place. One thread.
class ProcessRunner {
 public:
  ProcessRunner() = default;
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;
  virtual ~ProcessRunner() = default;

  // Readable when receive() has something.
  [[nodiscard]] virtual int fd() const = 0;
  // Never blocks.
  [[nodiscard]] virtual std::vector<GuardianEvent> receive() = 0;

  // Variables for every worker that is spawned from now on; replaces those shared before. So a
  // megabyte of environment goes to the guardian once and not with every worker.
  virtual void share_environment(const std::vector<std::string>& environment) = 0;
  virtual void spawn(SpawnRequest request) = 0;
  // To the process groups of all workers; SIGSTOP and SIGCONT to everything that they have started.
  virtual void signal_all(int signal) = 0;
  // To this worker, if Spawned has told of it and it runs; to nothing that it has started.
  virtual void signal(WorkerId worker, int signal) = 0;
  // As the function of this name in descendants.hpp.
  [[nodiscard]] virtual bool acts_by_default(pid_t pid, int signal) const = 0;
  // `signal` to every worker's group, `grace` (ends early when all are gone), SIGKILL to the rest,
  // every descendant included; then the event Stopped. A second call while one is under way may
  // shorten the grace, never lengthens it. A guardian that somebody has stopped is woken. One that
  // does not stop the workers in time is killed; GuardianLost follows when everything is gone.
  virtual void stop(int signal, std::chrono::milliseconds grace) = 0;
  // Nothing that hangs is waited for any more: within about two seconds GuardianLost follows, and
  // the destructor leaves the helpers to end by themselves.
  virtual void give_up() = 0;

  // Workers may run until `length` after `since`, a moment not long ago; without any call for as
  // long as they like. At the end the guardian kills them; if it is stopped or hangs, the watchdog
  // kills it with them a little later. Workers that SIGSTOP of signal_all() has stopped live on; if
  // the lease is over when SIGCONT comes, they go on when it is renewed.
  virtual void renew_lease(std::chrono::steady_clock::time_point since,
                           std::chrono::milliseconds length) = 0;

  // Helpers that somebody has stopped go on, and see what they have missed.
  virtual void wake() = 0;

  // A folder of the agent's that must not outlive it: removed with all it holds when this object or
  // the whole process is gone, also by SIGKILL. An absolute path.
  virtual void remove_at_end(const std::string& folder) = 0;

  // Said when this process has ended without taking it back, and nothing that it had started is
  // left. Replaces what was given before; an empty one takes that back.
  virtual void say_at_end(const Farewell& farewell) = 0;

  // Ctrl-Z: the workers and all that they have started stop and go on with this process. Returns
  // when it goes on; false, and nothing is done, if it cannot be suspended.
  virtual bool suspend(int signal) = 0;
};

// The agent's handle. Throws std::system_error if the environment is broken (no memory for a fork).
class Guardian final : public ProcessRunner {
 public:
  // Forks the guardian and does not wait for it: it carries out earlier requests as soon as it
  // runs. Call before any thread exists. The caller becomes a child subreaper too.
  static Guardian start(const GuardianOptions& options = {});
  Guardian(Guardian&&) noexcept;
  Guardian& operator=(Guardian&&) noexcept;
  // Whatever is left gets killed, and the helpers end. Returns at once; ask for nothing more.
  void end();
  // As end(), and waits for the helpers' end. That takes up to kLongestKilling if
  // SIGKILL does not end a process at once; after give_up() a second.
  ~Guardian() override;

  [[nodiscard]] int fd() const override;
  [[nodiscard]] std::vector<GuardianEvent> receive() override;
  void share_environment(const std::vector<std::string>& environment) override;
  void spawn(SpawnRequest request) override;
  void signal_all(int signal) override;
  void signal(WorkerId worker, int signal) override;
  [[nodiscard]] bool acts_by_default(pid_t pid, int signal) const override;
  void stop(int signal, std::chrono::milliseconds grace) override;
  void give_up() override;
  void renew_lease(std::chrono::steady_clock::time_point since,
                   std::chrono::milliseconds length) override;
  void wake() override;
  void remove_at_end(const std::string& folder) override;
  void say_at_end(const Farewell& farewell) override;
  bool suspend(int signal) override;

  // Takes all of remove_at_end() back: a thread of this process hangs in one of the folders.
  void leave_folders();

  // Waits until the guardian is there; 0 if it never starts.
  [[nodiscard]] pid_t pid() const;

 private:
  struct Impl;
  explicit Guardian(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::process
