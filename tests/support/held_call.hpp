// Holds a process between two of its system calls, for what can happen there and hardly ever does.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>

namespace drun::test {

// Runs `work` in a process of its own, which waits before its first call of `number` (SYS_flock)
// until `meanwhile` has returned here. What `work` returns (0 to 254); nullopt where the system
// allows no debugger, or if there was no such call.
inline std::optional<int> held_at_call(long number, const std::function<int()>& work,
                                       const std::function<void()>& meanwhile) {
  constexpr int kNoDebugger = 255;
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kNoDebugger);
    ::raise(SIGSTOP);
    ::_exit(work());
  }
  bool held = false;
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  while (!held && WIFSTOPPED(status)) {
    ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    ::waitpid(pid, &status, 0);
    __ptrace_syscall_info info{};
    ::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
    held = WIFSTOPPED(status) && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
           info.entry.nr == static_cast<unsigned long>(number);
  }
  if (!held) return std::nullopt;
  meanwhile();
  ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  ::waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) == kNoDebugger) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace drun::test
