#include "launcher/process/guardian_watchdog.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/deadline.hpp"
#include "launcher/process/cgroup.hpp"
#include "launcher/process/child_signals.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/excuse.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/last_will.hpp"
#include "launcher/process/lease.hpp"
#include "launcher/process/timer_fd.hpp"
#include "launcher/process/wire.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

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

// All that the watchdog needs of the system; made before there is a guardian. Throws
// std::system_error.
struct Watch {
  ChildSignals child_signals;
  TimerFd lease_timer{CLOCK_BOOTTIME};
  Excuse excuse;  // the guardian's
  // What the agent has ordered.
  LastWill will;
  RunLease lease{kGuardianLate};
  milliseconds lease_length{};
  std::optional<BootTime> due;  // when the timer wakes it
  bool was_late = false;        // since the lease was renewed

  void wake_at(std::optional<BootTime> when) {
    due = when;
    lease_timer.set(when);
  }
};

void take(Watch& watch, wire::Type type, std::string_view payload) {
  wire::Reader body(payload);
  switch (type) {
    case wire::Type::Renew: {
      const auto renewal = body.number<wire::RenewBody>();
      (void)watch.lease.renew(BootTime(renewal.end_ns), boot_now());
      watch.lease_length = milliseconds(renewal.length_ms);
      watch.was_late = false;
      return watch.wake_at(watch.lease.next_deadline());
    }
    case wire::Type::SignalAll:
      if (body.number<wire::SignalBody>().signal == SIGSTOP) return watch.lease.suspend();
      return (void)watch.lease.resume(boot_now());
    default:
      return watch.will.take(type, payload);
  }
}

// All that the agent has said. False when it is gone.
bool read_agent(int agent, Watch& watch) {
  char message[wire::kLongestForWatchdog];
  for (;;) {
    const ssize_t n = ::recv(agent, message, sizeof message, MSG_DONTWAIT);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n < static_cast<ssize_t>(sizeof(wire::Header))) continue;
    const std::string_view all(message, static_cast<std::size_t>(n));
    take(watch, wire::Reader(all).number<wire::Header>().type, all.substr(sizeof(wire::Header)));
  }
}

// The lease is over, and the guardian does not end the workers: it is stopped, or hangs. If this
// process itself was stopped for long, it may have missed renewals, so it waits for another.
bool must_end_workers(Watch& watch) {
  const auto now = boot_now();
  if (watch.due && now >= *watch.due + kGuardianLate && !std::exchange(watch.was_late, true)) {
    watch.wake_at(now + watch.lease_length);
    return false;
  }
  if (!watch.lease.broken(now)) return false;
  const auto excused = watch.excuse.until();
  if (excused <= now) return true;
  watch.wake_at(excused);
  return false;
}

// Returns when the guardian or the agent is gone, or the lease is broken: false when it was the
// agent.
bool keep_watch(int agent, pid_t guardian, ExitStatus& status, Watch& watch) {
  for (;;) {
    if (reap_guardian(guardian, status)) return true;
    pollfd entries[] = {{agent, POLLIN, 0},
                        {watch.child_signals.fd(), POLLIN, 0},
                        {watch.lease_timer.fd(), POLLIN, 0}};
    ::poll(entries, 3, -1);
    if (entries[0].revents != 0 && !read_agent(agent, watch)) return false;
    if (entries[2].revents != 0) {
      watch.lease_timer.clear();
      if (must_end_workers(watch)) {
        status = {0, SIGKILL, false};  // as it is about to be
        return true;
      }
    }
    watch.child_signals.clear();
  }
}

// After the agent's end: the guardian ends the job by itself. Killing it and doing that in its
// place would leave nobody, should this process be killed meanwhile. One that is stopped is woken.
// False when it hangs.
bool await_guardian(pid_t guardian, ExitStatus& status, const ChildSignals& child_signals) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + kEndLimit + kFarewellLimit;
  while (!reap_guardian(guardian, status)) {
    ::kill(guardian, SIGCONT);
    const auto left = time_left(deadline);
    if (left.count() == 0) return false;
    pollfd entry{child_signals.fd(), POLLIN, 0};
    ::poll(&entry, 1, poll_limit(left));
    child_signals.clear();
  }
  return true;
}

void await_end_of_agent(int agent, Watch& watch) {
  do {
    pollfd entry{agent, POLLIN, 0};
    ::poll(&entry, 1, -1);
  } while (read_agent(agent, watch));
}

void report(int agent, const WatchdogReport& what) {
  ::send(agent, &what, sizeof what, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

void watchdog_main(FileDescriptor agent, FileDescriptor commands,
                   const GuardianOptions& options) noexcept {
  WatchdogReport result;
  const auto fail = [&](int error) {
    result.error = error;
    report(agent.get(), result);
    ::_exit(1);
  };
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  be_woken_by_parents_end();
  const pid_t parent = ::getppid();
  // Before there is a guardian, so before there can be a worker. Neither name contains the
  // program's: a kill by that name, or of the agent's group or session, must not hit this process.
  detach({agent.get(), commands.get()}, "job-keeper");
  set_command_line("job-keeper for process " + std::to_string(parent));
  std::optional<Watch> watch;
  try {
    watch.emplace();
  } catch (const std::system_error& failed) {
    fail(failed.code().value());
  }
  // The guardian's place as well: it takes a while to find.
  const auto place = find_cgroups();
  const pid_t self = ::getpid();
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    agent.reset();
    guardian_main(std::move(commands), options, place, self, watch->excuse);
  }
  if (guardian < 0) fail(errno);
  commands.reset();
  const auto group = worker_cgroup(options, place);
  const bool lost = keep_watch(agent.get(), guardian, result.guardian, *watch);
  const bool ended = lost || await_guardian(guardian, result.guardian, watch->child_signals);
  // It has done all there is to do, unless a process hangs: that is this one's now.
  const bool done = ended && result.guardian.success();
  const bool gone = kill_job(group ? &*group : nullptr, done ? milliseconds(0) : kKillLimit);
  if (lost) {
    report(agent.get(), result);
    await_end_of_agent(agent.get(), *watch);
  }
  if (gone && !done) say(watch->will.farewell());
  watch->will.remove_folders();
  ::_exit(0);
}

}  // namespace drun::process
