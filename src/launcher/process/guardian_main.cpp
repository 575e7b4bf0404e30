// guardian_main(): the life of the guardian process.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_loop.hpp"

namespace drun::process {
namespace {

// Not this process's parent any more: it is gone.
void signal_watchdog(pid_t watchdog, int signal) {
  if (::getppid() == watchdog) ::kill(watchdog, signal);
}

}  // namespace

std::optional<WorkerCgroup> worker_cgroup(const GuardianOptions& options,
                                          const CgroupPaths& place) {
  if (!options.use_cgroup) return std::nullopt;
  if (!options.cgroup_parent.empty())
    return WorkerCgroup(options.cgroup_parent, options.cgroup_name);
  if (const auto parent = find_delegated(place)) return WorkerCgroup(*parent, options.cgroup_name);
  return std::nullopt;
}

bool kill_job(const WorkerCgroup* group, std::chrono::milliseconds limit) {
  if (group != nullptr) group->kill();
  const bool gone = kill_descendants(limit, [](const Reaped&) {});
  if (group != nullptr) group->remove(std::min(limit, kRemoveLimit));
  return gone;
}

void guardian_main(FileDescriptor agent, const GuardianOptions& options, const CgroupPaths& place,
                   pid_t watchdog, const Excuse& excuse) noexcept {
  std::optional<GuardianLoop> loop;
  int error = 0;
  try {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    be_woken_by_parents_end();
    set_apart({agent.get()}, "drun-guardian");
    if (options.open_files) ::setrlimit(RLIMIT_NOFILE, &*options.open_files);
    loop.emplace(std::move(agent), options, place, excuse);
    loop->run();
  } catch (const std::system_error& failed) {
    error = failed.code().value();
  } catch (...) {
    error = ENOMEM;  // all other exceptions mean a lack of memory
  }
  // The workers must not outlive their guardian.
  signal_watchdog(watchdog, SIGCONT);
  if (loop) loop->end_spawns();
  const bool gone = kill_job(loop ? loop->group() : nullptr, kKillLimit);
  // After an error the agent still lives, and hears of it.
  if (error == 0 && loop) {
    if (gone) say(loop->will().farewell());
    loop->will().remove_folders();
    // There is nothing left to do for it, and nobody would wake it if it was stopped after this
    // process's end.
    if (!loop->ended_in_order()) signal_watchdog(watchdog, SIGKILL);
  }
  ::_exit(error);
}

}  // namespace drun::process
