// Holds a process between two of its system calls, for what can happen there and hardly ever does.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <initializer_list>
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

// One thread of a process that runs. The thread that made this is its debugger.
class HeldThread {
 public:
  explicit HeldThread(pid_t thread) : thread_(thread) {
    holds_ = ::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) == 0 &&
             ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 && stops();
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  ~HeldThread() { let_go(); }

  // False where the system allows no debugger.
  [[nodiscard]] bool holds() const { return holds_; }
  // Lets it go on until it is about to make one of these calls. False: it ended first.
  [[nodiscard]] bool go_on_to(std::initializer_list<long> numbers) {
    while (holds_) {
      ::ptrace(PTRACE_SYSCALL, thread_, nullptr, nullptr);
      if (!stops()) return false;
      __ptrace_syscall_info info{};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, thread_, sizeof info, &info);
      if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
      for (const long number : numbers)
        if (info.entry.nr == static_cast<unsigned long>(number)) return true;
    }
    return false;
  }
  void let_go() {
    if (holds_) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
    holds_ = false;
  }

 private:
  bool stops() {
    int status = 0;
    while (::waitpid(thread_, &status, __WALL) < 0 && errno == EINTR) {
    }
    holds_ = WIFSTOPPED(status);
    return holds_;
  }

  pid_t thread_;
  bool holds_ = false;
};

}  // namespace drun::test
