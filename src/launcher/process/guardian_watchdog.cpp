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
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "launcher/process/cgroup.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/wire.hpp"

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

// What the agent has ordered for its end.
struct LastWill {
  std::vector<std::string> folders;
  Farewell farewell;
};

// One message of the agent's. False when the agent is gone.
bool read_agent(int agent, LastWill& will) {
  char message[sizeof(wire::Header) + PATH_MAX];
  const ssize_t n = ::recv(agent, message, sizeof message, MSG_DONTWAIT);
  if (n >= static_cast<ssize_t>(sizeof(wire::Header))) {
    const std::string_view all(message, static_cast<std::size_t>(n));
    const std::string_view payload = all.substr(sizeof(wire::Header));
    const auto type = wire::Reader(all).number<wire::Header>().type;
    if (type == wire::Type::Farewell) will.farewell = wire::decode_farewell(payload);
    if (type == wire::Type::RemoveFolder &&
        std::find(will.folders.begin(), will.folders.end(), payload) == will.folders.end())
      will.folders.emplace_back(payload);
  }
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

// Returns when the guardian or the agent is gone: true when it was the guardian.
bool watch(int agent, pid_t guardian, ExitStatus& status, LastWill& will) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  const FileDescriptor child_signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    if (reap_guardian(guardian, status)) return true;
    pollfd entries[] = {{agent, POLLIN, 0}, {child_signals.get(), POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[0].revents != 0 && !read_agent(agent, will)) return false;
    signalfd_siginfo ignored[16];
    while (::read(child_signals.get(), ignored, sizeof ignored) > 0) {
    }
  }
}

void await_end_of_agent(int agent, LastWill& will) {
  do {
    pollfd entry{agent, POLLIN, 0};
    ::poll(&entry, 1, -1);
  } while (read_agent(agent, will));
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
  LastWill will;
  const bool lost = watch(agent.get(), guardian, result.guardian, will);
  const bool gone = kill_job(group ? &*group : nullptr);
  if (lost) {
    report(agent.get(), result);
    await_end_of_agent(agent.get(), will);
  }
  if (gone) say(will.farewell);
  for (const auto& folder : will.folders) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  ::_exit(0);
}

}  // namespace drun::process
