// A process that does nothing, in a group of its own as a worker is.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/patience.hpp"

namespace drun::test {

class WaitingProcess {
 public:
  WaitingProcess() : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test be killed
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
  // Waits for its end; the signal that it died of, 0 if it lives on.
  [[nodiscard]] int signal_at_end() const {
    siginfo_t end{};
    (void)eventually([&] {
      return ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOWAIT | WNOHANG) != 0 ||
             end.si_pid == pid_;
    });
    return end.si_status;
  }

 private:
  const pid_t pid_;
};

}  // namespace drun::test
