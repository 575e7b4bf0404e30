// Runs a piece of a test in a process of its own, whose limits, user, cgroup and signal mask may be
// changed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <functional>

namespace drun::process::test {

// What `work` returns (0 to 255), or 1000 + the signal that killed it, or 99 for an exception.
inline int in_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    int code = 99;
    try {
      code = work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in_child: %s\n", error.what());
    }
    ::_exit(code);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace drun::process::test
