#include "launcher/process/descendants.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "support/debugger.hpp"
#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kShort = 50ms;
constexpr auto kEndless = 600s;  // longer than any test may take

bool zombie(pid_t pid) {
  const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  return stat && stat->find(") Z ") != std::string::npos;
}

pid_t start_sleeper() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  for (;;)
    ::pause();
}

bool waits_for(const std::vector<pid_t>& pids, milliseconds limit) {
  const auto before = Clock::now();
  await_death(pids, limit);
  return Clock::now() - before >= limit;
}

TEST(AwaitDeathTest, AChildThatEndsIsNews) {
  EXPECT_EQ(in_child([] {
              const pid_t lives = start_sleeper();
              const pid_t dies = start_sleeper();
              ::kill(dies, SIGKILL);  // before or during the wait
              await_death({lives, dies}, kEndless);
              await_death({lives, dies}, kEndless);  // it has ended, and was not collected
              const bool dead = zombie(dies);
              ::kill(lives, SIGKILL);
              return dead ? 0 : 1;
            }),
            0);
}

TEST(AwaitDeathTest, AZombieThatItsParentDoesNotCollectIsNoNews) {
  Pipe report;
  EXPECT_EQ(in_child([&] {
              const pid_t parent = ::fork();
              if (parent == 0) {
                const pid_t dead = ::fork();
                if (dead == 0) ::_exit(0);
                (void)!::write(report.write.get(), &dead, sizeof dead);
                for (;;)
                  ::pause();
              }
              pid_t dead = 0;
              if (::read(report.read.get(), &dead, sizeof dead) != sizeof dead) return 1;
              if (!eventually([&] { return zombie(dead); })) return 2;
              const bool waited = waits_for({dead, parent}, kShort);
              ::kill(parent, SIGKILL);
              await_death({dead, parent}, kEndless);  // its parent's end is
              return waited && zombie(parent) ? 0 : 3;
            }),
            0);
}

TEST(AwaitDeathTest, AChildThatADebuggerHoldsIsNoNews) {
  Pipe go_on;
  Pipe report;
  const int result = in_child([&] {
    const pid_t held = start_sleeper();
    const pid_t tester = ::fork();
    if (tester == 0) {
      drun::test::Debugger debugger(held);
      const char holds = debugger.holds() ? 'y' : 'n';
      ::kill(held, SIGKILL);
      (void)!::write(report.write.get(), &holds, 1);
      char end = 0;
      (void)!::read(go_on.read.get(), &end, 1);
      debugger.release();
      ::_exit(0);
    }
    char holds = 0;
    if (::read(report.read.get(), &holds, 1) != 1) return 1;
    if (holds != 'y') return 77;
    if (!eventually([&] { return zombie(held); })) return 2;
    const bool waited = waits_for({held}, kShort);
    (void)!::write(go_on.write.get(), "", 1);
    const bool collected = ::waitpid(held, nullptr, 0) == held;
    return waited && collected && ::waitpid(tester, nullptr, 0) == tester ? 0 : 3;
  });
  if (result == 77) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_EQ(result, 0);
}

// Whether the kernel writes a core file is the machine's affair; what it says of it is passed on.
TEST(ReapTest, TellsHowChildrenEnded) {
  const drun::test::TemporaryDirectory folder;  // for core files
  EXPECT_EQ(
      in_child([&] {
        if (::chdir(folder.file(".").c_str()) != 0) return 1;
        const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
        (void)::setrlimit(RLIMIT_CORE, &all);
        const pid_t aborts = ::fork();
        if (aborts == 0) {
          ::signal(SIGABRT, SIG_DFL);
          ::abort();
        }
        siginfo_t told{};
        if (::waitid(P_PID, static_cast<id_t>(aborts), &told, WEXITED | WNOWAIT) != 0) return 2;
        const bool dumped = told.si_code == CLD_DUMPED;
        const pid_t exits = ::fork();
        if (exits == 0) ::_exit(7);
        if (!eventually([&] { return zombie(exits); })) return 3;
        int right = 0;
        const bool left = reap_children([&](const Reaped& reaped) {
          const auto& status = reaped.status;
          if (reaped.pid == aborts && status.signal == SIGABRT && status.code == 0 &&
              status.core_dumped == dumped)
            ++right;
          if (reaped.pid == exits && status.code == 7 && status.signal == 0 && !status.core_dumped)
            ++right;
        });
        return right == 2 && !left ? 0 : 4;
      }),
      0);
}

TEST(ActsByDefaultTest, OnWhatAProcessNeitherCatchesNorIgnores) {
  EXPECT_EQ(in_child([] {
              const pid_t self = ::getpid();
              ::signal(SIGTERM, SIG_DFL);
              ::signal(SIGUSR1, SIG_IGN);
              ::signal(SIGRTMAX, [](int) {});
              if (!acts_by_default(self, SIGTERM)) return 1;
              if (acts_by_default(self, SIGUSR1)) return 2;
              if (acts_by_default(self, SIGRTMAX)) return 3;
              const pid_t gone = ::fork();
              if (gone == 0) ::_exit(0);
              ::waitpid(gone, nullptr, 0);
              return acts_by_default(gone, SIGTERM) ? 4 : 0;
            }),
            0);
}

}  // namespace
}  // namespace drun::process::test
