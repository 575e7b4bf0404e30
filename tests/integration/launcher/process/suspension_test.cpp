// Ctrl-Z as a process sees it that a shell could resume, or nobody.
#include "launcher/process/suspension.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/in_child.hpp"

namespace drun::process {
namespace {

using test::in_child;

TEST(SuspendTest, NobodyCouldResumeTheLeaderOfASession) {
  EXPECT_EQ(in_child([] {
              ::setsid();
              if (can_be_suspended()) return 1;
              suspend();  // returns at once
              return 0;
            }),
            0);
}

TEST(SuspendTest, AJobOfAShellStopsAndGoesOn) {
  EXPECT_EQ(in_child([] {
              const pid_t job = ::fork();
              if (job == 0) {
                ::setpgid(0, 0);
                if (!can_be_suspended()) ::_exit(1);
                suspend(SIGTTIN);
                ::_exit(0);
              }
              int status = 0;
              if (::waitpid(job, &status, WUNTRACED) != job) return 1;
              if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTTIN) return 2;
              ::kill(job, SIGCONT);
              if (::waitpid(job, &status, 0) != job) return 3;
              return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
            }),
            0);
}

}  // namespace
}  // namespace drun::process
