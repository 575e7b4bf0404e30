// Processes that do nothing, in groups of their own as workers are.
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
  WaitingProcess() : WaitingProcess(false) {}
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

 protected:
  explicit WaitingProcess(bool busy) : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // should the test be killed
      for (volatile bool spins = busy;;)
        if (!spins) ::pause();
    }
    ::setpgid(pid_, pid_);
  }

 private:
  const pid_t pid_;
};

// One that spins, and nothing comes of it.
class BusyProcess : public WaitingProcess {
 public:
  BusyProcess() : WaitingProcess(true) {}
};

}  // namespace drun::test
