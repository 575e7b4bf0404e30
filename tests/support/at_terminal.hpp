// Runs a piece of a test in a process that leads the session of a new terminal.
#pragma once

#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace drun::test {

// The exit code of `work` in a process whose standard input is that terminal, or 1000 + the signal
// that killed it.
inline int at_terminal(const std::function<int()>& work) {
  int master = -1;
  const pid_t pid = ::forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(master);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// A process that reads the terminal in a session of its own, as a worker does, or with `reads`
// false only sleeps.
inline pid_t start_at_terminal(bool reads) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setsid();
  char byte = 0;
  if (!reads) ::pause();
  ::_exit(::read(STDIN_FILENO, &byte, 1) < 0 ? 1 : 0);
}

inline void end(pid_t process) {
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

}  // namespace drun::test
