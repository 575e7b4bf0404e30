// A process that a debugger holds: killed, it stays a zombie that its own parent cannot collect;
// stopped by it, no SIGCONT wakes it.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <cerrno>

namespace drun::test {

// One thread: the one that made it is the debugger.
class Debugger {
 public:
  explicit Debugger(pid_t pid)
      : pid_(pid), holds_(::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) {}
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;
  ~Debugger() { release(); }

  // False where the system does not allow it.
  [[nodiscard]] bool holds() const { return holds_; }
  // Until let_go(). Only for one that lives.
  void stop() const {
    ::ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr);
    while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  void let_go() {
    holds_ = false;
    ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
  // Lets go of it, once it is dead: only for one that was killed.
  void release() {
    if (!holds_) return;
    holds_ = false;
    while (::waitpid(pid_, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t pid_;
  bool holds_;
};

}  // namespace drun::test
