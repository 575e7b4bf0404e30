#include "launcher/process/guardian_watchdog.hpp"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/process/cgroup.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/detach.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/kill_limit.hpp"
#include "launcher/process/last_will.hpp"
#include "launcher/process/lease.hpp"
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

// The guardian has this long to do it first.
constexpr milliseconds kLate{700};

// What the agent has ordered.
struct Orders {
  LastWill will;
  Lease lease{kLate};
  BootTimer lease_timer;
  milliseconds lease_length{};
  bool was_late = false;  // since the lease was renewed
};

void take(Orders& orders, wire::Type type, std::string_view payload) {
  wire::Reader body(payload);
  switch (type) {
    case wire::Type::Renew: {
      const auto renewal = body.number<wire::RenewBody>();
      (void)orders.lease.renew(BootTime(renewal.end_ns), boot_now());
      orders.lease_length = milliseconds(renewal.length_ms);
      orders.was_late = false;
      return orders.lease_timer.set(orders.lease.next_deadline());
    }
    case wire::Type::SignalAll:
      if (body.number<wire::SignalBody>().signal == SIGSTOP) return orders.lease.suspend();
      return (void)orders.lease.resume(boot_now());
    default:
      return orders.will.take(type, payload);
  }
}

// All that the agent has said. False when it is gone.
bool read_agent(int agent, Orders& orders) {
  char message[sizeof(wire::Header) + PATH_MAX];
  for (;;) {
    const ssize_t n = ::recv(agent, message, sizeof message, MSG_DONTWAIT);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n < static_cast<ssize_t>(sizeof(wire::Header))) continue;
    const std::string_view all(message, static_cast<std::size_t>(n));
    take(orders, wire::Reader(all).number<wire::Header>().type, all.substr(sizeof(wire::Header)));
  }
}

// The lease is over, and the guardian has not ended the workers: it is stopped, or hangs. If this
// process itself was stopped for long, it may have missed renewals, so it waits for another.
bool must_end_workers(Orders& orders) {
  const auto now = boot_now();
  const auto deadline = orders.lease.next_deadline();
  if (deadline && now >= *deadline + kLate && !std::exchange(orders.was_late, true)) {
    orders.lease_timer.set(now + orders.lease_length);
    return false;
  }
  return orders.lease.broken(now) && descendants().size() > 1;
}

// Readable when a child has ended, stopped or gone on.
FileDescriptor open_child_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void forget_signals(int child_signals) {
  signalfd_siginfo ignored[16];
  while (::read(child_signals, ignored, sizeof ignored) > 0) {
  }
}

// Returns when the guardian or the agent is gone, or the lease is broken: false when it was the
// agent.
bool watch(int agent, pid_t guardian, ExitStatus& status, Orders& orders) {
  const auto child_signals = open_child_signals();
  for (;;) {
    if (reap_guardian(guardian, status)) return true;
    pollfd entries[] = {
        {agent, POLLIN, 0}, {child_signals.get(), POLLIN, 0}, {orders.lease_timer.fd(), POLLIN, 0}};
    ::poll(entries, 3, -1);
    if (entries[0].revents != 0 && !read_agent(agent, orders)) return false;
    if (entries[2].revents != 0) {
      orders.lease_timer.clear();
      if (must_end_workers(orders)) {
        status = {0, SIGKILL, false};  // as it is about to be
        return true;
      }
    }
    forget_signals(child_signals.get());
  }
}

// After the agent's end: the guardian ends the job by itself. Killing it and doing that in its
// place would leave nobody, should this process be killed meanwhile. One that is stopped is woken.
// False when it hangs.
bool await_guardian(pid_t guardian, ExitStatus& status) {
  using Clock = std::chrono::steady_clock;
  const auto child_signals = open_child_signals();
  const auto deadline = Clock::now() + kEndLimit + kFarewellLimit;
  while (!reap_guardian(guardian, status)) {
    ::kill(guardian, SIGCONT);
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{child_signals.get(), POLLIN, 0};
    ::poll(&entry, 1, static_cast<int>(left));
    forget_signals(child_signals.get());
  }
  return true;
}

void await_end_of_agent(int agent, Orders& orders) {
  do {
    pollfd entry{agent, POLLIN, 0};
    ::poll(&entry, 1, -1);
  } while (read_agent(agent, orders));
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
  const pid_t self = ::getpid();
  const pid_t guardian = ::fork();
  if (guardian == 0) {
    agent.reset();
    guardian_main(std::move(commands), options, self);
  }
  if (guardian < 0) {
    result.error = errno;
    report(agent.get(), result);
    ::_exit(1);
  }
  commands.reset();
  const auto group = worker_cgroup(options, find_cgroups());
  Orders orders;
  const bool lost = watch(agent.get(), guardian, result.guardian, orders);
  const bool ended = lost || await_guardian(guardian, result.guardian);
  // It has done all there is to do, unless a process hangs: that is this one's now.
  const bool done = ended && result.guardian.success();
  const bool gone = kill_job(group ? &*group : nullptr, done ? milliseconds(0) : kKillLimit);
  if (lost) {
    report(agent.get(), result);
    await_end_of_agent(agent.get(), orders);
  }
  if (gone && !done) say(orders.will.farewell());
  orders.will.remove_folders();
  ::_exit(0);
}

}  // namespace drun::process
