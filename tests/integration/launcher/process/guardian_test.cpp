#include "launcher/process/guardian.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

TEST(GuardianTest, RunsAProgramAndTellsItsExitCode) {
  Driver driver;
  driver.guardian.spawn(Driver::shell(7, "exit 42"));
  const auto spawned = driver.await<Spawned>(7);
  ASSERT_TRUE(spawned);
  const auto exited = driver.await<Exited>(7);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->pid, spawned->pid);
  EXPECT_EQ(exited->status, (ExitStatus{42, 0, false}));
}

TEST(GuardianTest, TellsTheSignalThatKilledAWorker) {
  Driver driver;
  driver.guardian.spawn(Driver::shell(1, "kill -SEGV $$"));
  const auto exited = driver.await<Exited>(1);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.signal, SIGSEGV);
}

TEST(GuardianTest, ConnectsTheStreamsItIsGivenAndNullForTheOthers) {
  Driver driver;
  Pipe out;
  auto request = Driver::shell(1, "cat; ls -l /proc/self/fd; echo $PATH");
  request.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(request));
  const std::string text = read_all(out.read.get());
  EXPECT_NE(text.find("0 -> /dev/null"), std::string::npos) << text;
  EXPECT_NE(text.find("2 -> /dev/null"), std::string::npos) << text;
  EXPECT_NE(text.find("/usr/bin:/bin\n"), std::string::npos) << text;
}

// Who kills drun by its name, group or session must not hit the watchdog, at no moment in which a
// worker may have started something: the watchdog is apart before there is a guardian.
TEST(GuardianTest, TheWatchdogIsApartBeforeThereIsAGuardian) {
  for (int round = 0; round < 20; ++round) {
    Pipe done;
    const pid_t agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
      done.write.reset();
      {
        const Driver driver;
        char end = 0;
        (void)!::read(done.read.get(), &end, 1);
      }
      ::_exit(0);
    }
    const auto only_child_of = [](pid_t parent) {
      const std::string id = std::to_string(parent);
      return std::atoi(
          read_small_file("/proc/" + id + "/task/" + id + "/children").value_or("").c_str());
    };
    pid_t watchdog = 0;
    EXPECT_TRUE(eventually([&] { return (watchdog = only_child_of(agent)) > 0; }));
    const auto deadline = Clock::now() + kPatience;
    while (only_child_of(watchdog) <= 0 && Clock::now() < deadline) {
    }
    const std::string directory = "/proc/" + std::to_string(watchdog);
    EXPECT_EQ(read_small_file(directory + "/comm").value_or(""), "job-keeper\n");
    EXPECT_TRUE(read_small_file(directory + "/cmdline").value_or("").starts_with("job-keeper"));
    EXPECT_EQ(::getsid(watchdog), watchdog);
    done.write.reset();
    EXPECT_EQ(::waitpid(agent, nullptr, 0), agent);
  }
}

TEST(GuardianTest, ASignalGoesToTheGroupsOfAllWorkers) {
  Driver driver;
  std::vector<Pipe> out(3);
  for (WorkerId id = 0; id < 3; ++id) {
    const char* script = "trap 'echo usr2' USR2; echo ready; while :; do sleep 0.02; done";
    ASSERT_EQ(driver.start(id, script, out[id]), "ready");
  }
  // The sleeps of the group die of the signal, the shells that trap it go on.
  driver.guardian.signal_all(SIGUSR2);
  for (auto& pipe : out)
    EXPECT_EQ(read_line(pipe.read.get()), "usr2");
}

TEST(GuardianTest, ASignalForOneWorkerReachesNeitherItsChildrenNorTheOthers) {
  Driver driver;
  std::vector<Pipe> out(2);
  const char* script =
      "trap 'echo worker' USR1; sh -c 'trap \"echo child\" USR1; trap exit USR2; echo ready; "
      "while :; do sleep 0.02; done' & while :; do sleep 0.02; done";
  for (WorkerId id = 0; id < 2; ++id) {
    ASSERT_EQ(driver.start(id, script, out[id]), "ready");
    // What a program does may be seen before the guardian knows that it runs.
    ASSERT_TRUE(driver.await<Spawned>(id));
  }
  driver.guardian.signal(1, SIGUSR1);
  EXPECT_EQ(read_line(out[1].read.get()), "worker");
  driver.guardian.signal(7, SIGUSR1);  // nobody
  driver.guardian.signal_all(SIGUSR2);
  for (auto& pipe : out)
    EXPECT_EQ(read_line(pipe.read.get()), "<end>");
}

TEST(GuardianTest, ASignalReachesWorkersThatHaveNoProcessYet) {
  Driver driver;
  constexpr WorkerId kWorkers = 4;
  for (WorkerId id = 0; id < kWorkers; ++id)
    driver.guardian.spawn(Driver::request(id, {"sleep", "1000"}));
  driver.guardian.signal_all(SIGUSR2);
  for (WorkerId id = 0; id < kWorkers; ++id) {
    const auto exited = driver.await<Exited>(id);
    ASSERT_TRUE(exited) << id;
    EXPECT_EQ(exited->status.signal, SIGUSR2);
  }
}

TEST(GuardianTest, DestructionKillsWorkersAndLeavesNoProcess) {
  pid_t worker = 0;
  pid_t guardian = 0;
  {
    Driver driver;
    guardian = driver.guardian.pid();
    driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
    worker = driver.await<Spawned>(1)->pid;
  }
  EXPECT_TRUE(gone(worker));
  EXPECT_TRUE(gone(guardian));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(GuardianTest, DeathOfTheGuardianIsToldWhenNothingIsLeft) {
  Driver driver;
  Pipe out;
  const pid_t grandchild =
      std::stoi(driver.start(1, "setsid sh -c 'echo $$; exec sleep 1000' & wait", out));
  ::kill(driver.guardian.pid(), SIGKILL);
  const auto lost = driver.await<GuardianLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->status.signal, SIGKILL);
  EXPECT_TRUE(gone(grandchild));
}

TEST(GuardianTest, WhatItCannotDoAtTheStartIsTold) {
  GuardianOptions options;
  options.open_files = rlimit{3, 3};  // those that it has
  Driver driver(options);
  const auto lost = driver.await<GuardianLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(describe(*lost),
            "drun's guardian process cannot work: Too many open files; raise its hard limit "
            "(ulimit -n)");
  GuardianLost no_device;
  no_device.status.code = ENOENT;
  EXPECT_EQ(describe(no_device),
            "drun's guardian process cannot work: No such file or directory (it needs /dev/null)");
}

// From here on, for this process and all that it starts.
bool refuse_descriptors(unsigned call, unsigned first_argument, bool any_argument) {
  constexpr auto kLoad = BPF_LD | BPF_W | BPF_ABS;
  constexpr auto kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  sock_filter filter[] = {
      BPF_STMT(kLoad, offsetof(seccomp_data, nr)),
      BPF_JUMP(kEqual, call, 0, 3),
      BPF_STMT(kLoad, offsetof(seccomp_data, args[0])),
      BPF_JUMP(kEqual, first_argument, 0, static_cast<std::uint8_t>(any_argument ? 0 : 1)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EMFILE),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(GuardianTest, WhatTheWatchdogCannotDoAtTheStartIsTold) {
  const struct {
    unsigned call;
    unsigned first_argument;
    bool any_argument;
  } kCalls[] = {{SYS_signalfd4, 0, true}, {SYS_timerfd_create, CLOCK_BOOTTIME, false}};
  for (const auto& each : kCalls) {
    const int result = in_child([&each] {
      if (!refuse_descriptors(each.call, each.first_argument, each.any_argument)) return 77;
      {
        Driver driver;
        const auto lost = driver.await<GuardianLost>(std::function<bool(const GuardianLost&)>());
        if (!lost) return 1;
        if (describe(*lost) !=
            "start the guardian: Too many open files; raise its hard limit (ulimit -n)")
          return 2;
      }
      return ::waitpid(-1, nullptr, WNOHANG) == -1 ? 0 : 3;
    });
    if (result == 77) GTEST_SKIP() << "no right to refuse a system call here";
    EXPECT_EQ(result, 0) << each.call;
  }
}

TEST(GuardianTest, WithoutGuardianAndWatchdogTheAgentKillsWhatIsLeft) {
  Driver driver;
  Pipe out;
  const pid_t grandchild =
      std::stoi(driver.start(1, "setsid sh -c 'echo $$; exec sleep 1000' & wait", out));
  ::kill(parent_of(driver.guardian.pid()), SIGKILL);
  ::kill(driver.guardian.pid(), SIGKILL);
  ASSERT_TRUE(driver.await<GuardianLost>());
  EXPECT_TRUE(gone(grandchild));
}

TEST(GuardianTest, OfAWorkerWhoseWholeFamilyIsKilledAtOnceNothingIsLeft) {
  Pipe report;
  const pid_t agent = ::fork();
  if (agent == 0) {
    GuardianOptions options;
    options.use_cgroup = false;  // nobody would be left to remove it
    Driver driver(options);
    driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
    const auto spawned = driver.await<Spawned>(1);
    const pid_t pids[] = {driver.guardian.pid(), parent_of(driver.guardian.pid()), spawned->pid};
    (void)!::write(report.write.get(), pids, sizeof pids);
    for (;;)
      ::pause();
  }
  pid_t pids[3] = {};
  ASSERT_EQ(::read(report.read.get(), pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  for (const pid_t pid : {agent, pids[1], pids[0]})
    ::kill(pid, SIGKILL);
  ::waitpid(agent, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return !alive(pids[2]); }));
}

TEST(GuardianTest, ChildrenThatTheAgentHadBeforeAreNeverTouched) {
  // As with `exec drun` in a script that has started something in the background.
  Pipe report;
  const int result = in_child([&] {
    Pipe orphan;
    const pid_t before = ::fork();
    if (before == 0) {
      if (::fork() == 0) {
        const pid_t self = ::getpid();
        (void)!::write(orphan.write.get(), &self, sizeof self);
        for (;;)
          ::pause();
      }
      for (;;)
        ::pause();
    }
    pid_t pids[2] = {before, 0};
    if (::read(orphan.read.get(), &pids[1], sizeof(pid_t)) != sizeof(pid_t)) return 1;
    (void)!::write(report.write.get(), pids, sizeof pids);
    {
      Driver driver;
      driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
      const auto spawned = driver.await<Spawned>(1);
      ::kill(parent_of(driver.guardian.pid()), SIGKILL);
      ::kill(driver.guardian.pid(), SIGKILL);
      if (!driver.await<GuardianLost>()) return 2;
      if (!eventually([&] { return !alive(spawned->pid); })) return 3;
    }
    { const Driver driver; }
    return alive(pids[0]) && alive(pids[1]) ? 0 : 4;
  });
  EXPECT_EQ(result, 0);
  pid_t pids[2] = {};
  ASSERT_EQ(::read(report.read.get(), pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  for (const pid_t pid : pids)
    ::kill(pid, SIGKILL);
}

TEST(GuardianTest, TheWatchdogIsNotFoundByTheNameOfTheProgram) {
  const int result = in_child([] {
    Driver driver;
    const pid_t watchdog = parent_of(driver.guardian.pid());
    const auto has_own_name = [watchdog] {
      const auto name = read_small_file("/proc/" + std::to_string(watchdog) + "/comm");
      const auto line = read_small_file("/proc/" + std::to_string(watchdog) + "/cmdline");
      return name && line && name->find("drun") == std::string::npos &&
             line->find("job-keeper") == 0 && line->find("process_test") == std::string::npos;
    };
    return eventually(has_own_name) ? 0 : 1;
  });
  EXPECT_EQ(result, 0);
}

TEST(GuardianTest, FoldersAreRemovedAtTheEndUnlessThatIsTakenBack) {
  const drun::test::TemporaryDirectory directory;
  for (const bool taken_back : {false, true}) {
    const std::string folder = directory.file("folder");
    std::filesystem::create_directories(folder + "/inner");
    {
      Driver driver;
      driver.guardian.remove_at_end(folder);
      if (taken_back) driver.guardian.leave_folders();
    }
    EXPECT_EQ(std::filesystem::exists(folder), taken_back);
  }
}

TEST(GuardianTest, FoldersAreRemovedByTheGuardianIfTheWatchdogIsGone) {
  const drun::test::TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  std::filesystem::create_directories(folder + "/inner");
  {
    Driver driver;
    driver.guardian.remove_at_end(folder);
    const pid_t watchdog = parent_of(driver.guardian.pid());
    ::kill(watchdog, SIGKILL);
    ASSERT_TRUE(eventually([watchdog] { return !alive(watchdog); }));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(GuardianTest, ASignalForAWorkerThatHasEndedGoesNowhere) {
  Driver driver;
  driver.guardian.spawn(Driver::request(1, {"true"}));
  ASSERT_TRUE(driver.await<Exited>(1));
  driver.guardian.signal_all(SIGKILL);
  driver.guardian.spawn(Driver::request(2, {"true"}));
  EXPECT_TRUE(driver.await<Exited>(2));
}

}  // namespace
}  // namespace drun::process::test
