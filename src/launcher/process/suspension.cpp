#include "launcher/process/suspension.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/signal_block.hpp"

namespace drun::process {
namespace {

pid_t await(pid_t child, int& status, int options) {
  pid_t result = -1;
  while ((result = ::waitpid(child, &status, options)) < 0 && errno == EINTR) {
  }
  return result;
}

}  // namespace

void suspend(int signal) {
  sigset_t suspension;
  sigset_t before;
  sigemptyset(&suspension);
  sigaddset(&suspension, signal);
  ::pthread_sigmask(SIG_BLOCK, &suspension, &before);
  struct sigaction standard {};
  struct sigaction handler {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, &handler);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &suspension, nullptr);  // here it stops
  ::sigaction(signal, &handler, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool can_be_suspended() {
  pid_t child = 0;
  {
    // A signal for this process must not reach it a second time through the child's handlers.
    const SignalBlock block;
    child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      suspend();
      ::_exit(0);
    }
  }
  int status = 0;
  if (child < 0 || await(child, status, WUNTRACED) != child || !WIFSTOPPED(status)) return false;
  ::kill(child, SIGKILL);
  await(child, status, 0);
  return true;
}

bool suspend_with(Guardian& guardian, int signal) {
  if (!can_be_suspended()) return false;
  guardian.signal_all(SIGSTOP);
  suspend(signal);
  guardian.signal_all(SIGCONT);
  return true;
}

}  // namespace drun::process
