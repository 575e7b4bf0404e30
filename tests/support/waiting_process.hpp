// A process that does nothing, in a group of its own as a worker is.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drun::test {

class WaitingProcess {
 public:
  WaitingProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;)
        ::pause();
    }
    ::setpgid(pid_, pid_);
  }
  WaitingProcess(const WaitingProcess&) = delete;
  WaitingProcess& operator=(const WaitingProcess&) = delete;
  ~WaitingProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Waits for its end; the signal that it died of.
  [[nodiscard]] int signal_at_end() const {
    siginfo_t end{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT);
    return end.si_status;
  }

 private:
  const pid_t pid_;
};

}  // namespace drun::test
