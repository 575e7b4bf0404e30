#include "launcher/process/guardian_watchdog.hpp"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/process/cgroup.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_loop.hpp"

namespace drun::process {
namespace {

// True when the guardian is gone; `status` says how.
bool reap_guardian(pid_t guardian, ExitStatus& status) {
  bool gone = false;
  reap_children([&](const Reaped& reaped) {
    if (reaped.pid != guardian) return;
    gone = true;
    status = reaped.status;
  });
  return gone;
}

// One message of the agent's: a folder to remove. False when the agent is gone.
bool read_agent(int agent, std::vector<std::string>& folders) {
  char path[PATH_MAX];
  const ssize_t n = ::recv(agent, path, sizeof path, MSG_DONTWAIT);
  if (n > 0) {
    std::string folder(path, static_cast<std::size_t>(n));
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  }
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// Returns when the guardian or the agent is gone: true when it was the guardian.
bool watch(int agent, pid_t guardian, ExitStatus& status, std::vector<std::string>& folders) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  const FileDescriptor child_signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    if (reap_guardian(guardian, status)) return true;
    pollfd entries[] = {{agent, POLLIN, 0}, {child_signals.get(), POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[0].revents != 0 && !read_agent(agent, folders)) return false;
    signalfd_siginfo ignored[16];
    while (::read(child_signals.get(), ignored, sizeof ignored) > 0) {
    }
  }
}

void await_end_of_agent(int agent, std::vector<std::string>& folders) {
  do {
    pollfd entry{agent, POLLIN, 0};
    ::poll(&entry, 1, -1);
  } while (read_agent(agent, folders));
}

void report(int agent, const WatchdogReport& what) {
  ::send(agent, &what, sizeof what, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

void watchdog_main(FileDescriptor agent, FileDescriptor commands,
                   const GuardianOptions& options) noexcept {
  WatchdogReport result;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = ::getppid();
  // Before there is a guardian, so before there can be a worker. Neither name contains the
  // program's: a kill by that name, or of the agent's group or session, must not hit this process.
  detach({agent.get(), commands.get()}, "job-keeper");
  set_command_line("job-keeper for process " + std::to_string(parent));
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    agent.reset();
    guardian_main(std::move(commands), options);
  }
  if (guardian < 0) {
    result.error = errno;
    report(agent.get(), result);
    ::_exit(1);
  }
  commands.reset();
  const auto group = worker_cgroup(options, find_cgroups(), guardian);
  std::vector<std::string> folders;
  const bool lost = watch(agent.get(), guardian, result.guardian, folders);
  kill_job(group ? &*group : nullptr);
  if (lost) {
    report(agent.get(), result);
    await_end_of_agent(agent.get(), folders);
  }
  for (const auto& folder : folders) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  ::_exit(0);
}

}  // namespace drun::process
