#include "launcher/look/held_threads.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/process_state.hpp"

namespace drun::launcher {
namespace {

// A process that waits between vfork and exec for its child, where only a kill ends the wait.
pid_t start_in_kernel() {
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::vfork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      ::pause();
  }
  ::_exit(0);
}

TEST(HeldThreadsTest, AThreadThatDoesNotLeaveTheKernelIsNotWaitedForAfterTheDeadline) {
  sigset_t children;
  sigset_t before;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &children, &before);
  const pid_t process = start_in_kernel();
  ASSERT_TRUE(test::eventually([&] { return test::state_of(process) == 'D'; }));
  HeldThreads held;
  held.stop(process, {process}, std::chrono::steady_clock::now());
  EXPECT_FALSE(held.holds(process));
  EXPECT_EQ(held.problem(process), "it does not leave the kernel");
  ::kill(-process, SIGKILL);
  EXPECT_EQ(::waitpid(process, nullptr, __WALL), process);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace drun::launcher
