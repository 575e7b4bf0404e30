// Guardian::Impl: how its helpers are watched, and what is done when one ends or hangs.
#include "launcher/process/guardian_impl.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "base/poll_until.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/guardian_loop.hpp"
#include "launcher/process/guardian_watchdog.hpp"
#include "launcher/process/kill_limit.hpp"

namespace drun::process {
namespace {

using std::chrono::milliseconds;

std::optional<ExitStatus> wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return std::nullopt;
  return from_wait_status(status);
}

bool await_readable(int fd, milliseconds limit) {
  return await_ready(fd, POLLIN, std::chrono::steady_clock::now() + limit);
}

}  // namespace

Waiting::Waiting()
    : events(::epoll_create1(EPOLL_CLOEXEC)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!events || !wake)
    throw std::system_error(errno, std::generic_category(),
                            "start the guardian: epoll_create1 or eventfd");
}

std::size_t spawn_window(const GuardianOptions& options) {
  constexpr rlim_t kMost = 32;
  constexpr rlim_t kOwnDescriptors = 24;
  rlimit limit{};
  if (options.open_files) {
    limit = *options.open_files;
  } else if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 1;
  }
  if (limit.rlim_cur <= kOwnDescriptors) return 1;
  return std::clamp<rlim_t>((limit.rlim_cur - kOwnDescriptors) / 4, 1, kMost);
}

void Guardian::Impl::signal_guardian(int signal) const {
  if (guardian_pidfd) {
    ::syscall(SYS_pidfd_send_signal, guardian_pidfd.get(), signal, nullptr, 0);
  } else if (guardian_process != 0 && !guardian_gone) {
    ::kill(guardian_process, signal);  // a kernel before 5.3
  }
}

// First the guardian: then its watchdog does the work. If that hangs too, this process does it; but
// after give_up() the watchdog is left to it, which may wait for what SIGKILL does not end.
void Guardian::Impl::on_stop_limit() {
  if (!lost.hung && guardian_process != 0 && !guardian_gone) {
    signal_guardian(SIGKILL);
  } else if (given_up) {
    left_behind = true;
  } else if (!watchdog_gone) {
    ::kill(watchdog_process, SIGKILL);
  }
  lost.hung = true;
  stop_limit.set(given_up ? kGiveUpLimit : kEndLimit);
}

void Guardian::Impl::read_watchdog() {
  WatchdogReport report;
  const ssize_t n = ::recv(watchdog.get(), &report, sizeof report, MSG_DONTWAIT);
  if (n < 0) return;
  if (n != static_cast<ssize_t>(sizeof report)) return end_watchdog();
  lost.status = report.guardian;
  lost.start_error = report.error;
  watchdog_did_its_work = true;
}

// False when it does not come.
bool Guardian::Impl::await_end_of_watchdog(milliseconds limit) const {
  WatchdogReport ignored;
  while (await_readable(watchdog.get(), limit))
    if (::recv(watchdog.get(), &ignored, sizeof ignored, 0) <= 0) return true;
  return false;
}

void Guardian::Impl::end_watchdog() {
  watchdog_gone = true;
  watch(EPOLL_CTL_DEL, watchdog.get(), 0);
  const auto status = wait_for(watchdog_process);
  watchdog_did_its_work = watchdog_did_its_work || (status && status->success());
}

// Does the watchdog's work after the guardian's end, if the watchdog cannot do it any more.
void Guardian::Impl::kill_job() {
  if (watchdog_did_its_work || left_behind) return;
  read_commands();
  const auto group = worker_cgroup(options, find_cgroups());
  if (group) group->kill();
  if (only_children)
    kill_descendants(kKillLimit, [this](const Reaped& reaped) {
      if (reaped.pid == guardian_process) lost.status = reaped.status;
    });
  if (group) group->remove(kRemoveLimit);
}

void Guardian::Impl::order_end() {
  if (std::exchange(end_ordered, true)) return;
  // The end of its stream is the guardian's order to kill everything and end; likewise the
  // watchdog's. One that somebody has stopped is woken.
  send(wire::Writer(wire::Type::End, 0).finish());
  ::shutdown(commands.fd(), SHUT_WR);
  signal_guardian(SIGCONT);
  if (watchdog_gone) return;
  ::shutdown(watchdog.get(), SHUT_WR);
  ::kill(watchdog_process, SIGCONT);
}

Guardian::Impl::~Impl() {
  order_end();
  if (!watchdog_gone) {
    if (left_behind) return;
    if (!await_end_of_watchdog(given_up ? kGiveUpLimit : kEndLimit)) {
      if (given_up) return;
      ::kill(watchdog_process, SIGKILL);
      if (!await_end_of_watchdog(kKillLimit)) return;  // it hangs inside the kernel
    }
    end_watchdog();
  }
  while (!guardian_gone && await_readable(commands.fd(), kEndLimit))
    read_commands();
  kill_job();
}

}  // namespace drun::process
