// Ctrl-Z as a process sees it that a shell could resume, or nobody.
#include "launcher/process/suspension.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"

namespace drun::process::test {
namespace {

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

// In the worker's group, in one of its own, and one that has outlived its worker.
TEST(SuspendTest, EverythingThatTheWorkersHaveStartedStopsAndGoesOn) {
  Driver driver;
  Pipe out;
  const std::string say_and_sleep = "'echo $$; exec sleep 1000'";
  const std::string start = "setsid sh -c " + say_and_sleep;
  std::vector<pid_t> processes;
  processes.push_back(std::stoi(driver.start(1, start + " & exit 0", out)));
  ASSERT_TRUE(driver.await<Exited>(1));
  Pipe second;
  const std::string text = "echo $$; (" + start + " &); sh -c " + say_and_sleep + " & wait";
  processes.push_back(std::stoi(driver.start(2, text, second)));
  for (int i = 0; i < 2; ++i)
    processes.push_back(std::stoi(read_line(second.read.get())));
  const auto all_are = [&processes](char state) {
    return eventually([&] {
      return std::all_of(processes.begin(), processes.end(),
                         [state](pid_t pid) { return state_of(pid) == state; });
    });
  };
  ASSERT_TRUE(all_are('S'));
  driver.guardian.signal_all(SIGSTOP);
  EXPECT_TRUE(all_are('T'));
  driver.guardian.signal_all(SIGCONT);
  EXPECT_TRUE(all_are('S'));
}

}  // namespace
}  // namespace drun::process::test
