#include "launcher/look/held_threads.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/small_file.hpp"

namespace drun::launcher {
namespace {

using Clock = std::chrono::steady_clock;

// The number behind `name` in /proc/PID/status; empty if it is not there.
std::string status_field(pid_t pid, std::string_view name) {
  const auto status = read_small_file("/proc/" + std::to_string(pid) + "/status");
  const std::string start = "\n" + std::string(name) + ":\t";
  const auto at = status ? status->find(start) : std::string::npos;
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return status->substr(from, status->find('\n', from) - from);
}

void await_change(Clock::time_point deadline) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const auto left = std::max(deadline - Clock::now(), Clock::duration(0));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec limit{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
  (void)::sigtimedwait(&child, nullptr, &limit);
}

}  // namespace

std::string refusal_text(pid_t process, int error) {
  if (error == ESRCH) return "it has just ended";
  if (const std::string tracer = status_field(process, "TracerPid");
      !tracer.empty() && tracer != "0")
    return "a debugger holds it (process " + tracer + ")";
  const auto yama = read_small_file("/proc/sys/kernel/yama/ptrace_scope");
  if (yama && (yama->starts_with('2') || yama->starts_with('3')))
    return "not permitted: kernel.yama.ptrace_scope is " + yama->substr(0, 1);
  if (error == EPERM)
    return "not permitted: it has more rights than drun, or a container lacks SYS_PTRACE";
  return "not permitted: " + std::generic_category().message(error);
}

void HeldThreads::stop(pid_t process, const std::vector<pid_t>& threads,
                       Clock::time_point deadline) {
  std::size_t awaited = 0;
  for (const pid_t thread : threads) {
    Held& held = threads_[thread];
    // SEIZE and INTERRUPT send no signal that the program could see.
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      held.problem = refusal_text(process, errno);
      continue;
    }
    held.seized = true;
    if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0) ++awaited;
  }
  while (awaited > 0) {
    awaited = 0;
    for (auto& [thread, held] : threads_)
      if (held.seized && !held.stopped && !collect(thread, held)) ++awaited;
    if (awaited == 0 || Clock::now() >= deadline) break;
    await_change(deadline);
  }
  for (auto& [thread, held] : threads_)
    if (held.seized && !held.stopped) held.problem = "it does not leave the kernel";
}

// False: it still runs.
bool HeldThreads::collect(pid_t thread, Held& held) {
  int status = 0;
  const pid_t changed = ::waitpid(thread, &status, __WALL | WNOHANG);
  if (changed == 0) return false;
  if (changed != thread || !WIFSTOPPED(status)) {
    held.seized = false;
    held.problem = "it has just ended";
    return true;
  }
  held.stopped = true;
  // A stop without an event holds back a signal.
  if (status >> 16 == 0) held.signal = WSTOPSIG(status);
  return true;
}

bool HeldThreads::holds(pid_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() && found->second.stopped;
}

std::string HeldThreads::problem(pid_t thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? "it has just begun" : found->second.problem;
}

// One that has not stopped cannot be let go: this process's end does it.
void HeldThreads::release() {
  for (auto& [thread, held] : threads_) {
    if (held.stopped)
      ::ptrace(PTRACE_DETACH, thread, nullptr,
               reinterpret_cast<void*>(static_cast<std::intptr_t>(held.signal)));
    held.stopped = false;
  }
}

}  // namespace drun::launcher
