// What hangs must not keep a job from ending: a program whose file system does not answer, a
// guardian that somebody has stopped.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "launcher/process/descendants.hpp"
#include "launcher/process/guardian.hpp"
#include "launcher/process/kill_limit.hpp"
#include "support/debugger.hpp"
#include "support/guardian_driver.hpp"
#include "support/held_call.hpp"
#include "support/hung_folder.hpp"
#include "support/in_child.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;
using drun::test::HungFolder;
using drun::test::TemporaryDirectory;

constexpr int kCannotHang = 77;
// Traps SIGTERM and says so.
constexpr const char* kStubborn =
    "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done";

// A script that is there, whose interpreter is in the folder that hangs.
std::string script_with_interpreter_in(const std::string& folder, const std::string& script) {
  std::ofstream(script) << "#!" << folder << "/python3\n";
  ::chmod(script.c_str(), 0755);
  return script;
}

// Runs `work` in a process of its own, with a script whose exec hangs.
int with_hanging_script(const std::function<int(const std::string& script)>& work) {
  return in_child([&work] {
    const TemporaryDirectory directory;
    const std::string folder = directory.file("hung");
    ::mkdir(folder.c_str(), 0755);
    const HungFolder hung(folder);
    if (!hung.hangs()) return kCannotHang;
    return work(script_with_interpreter_in(folder, directory.file("script")));
  });
}

#define EXPECT_ALL_WELL(result)                                                        \
  do {                                                                                 \
    const int code = result;                                                           \
    if (code == kCannotHang) GTEST_SKIP() << "may not mount a file system of its own"; \
    EXPECT_EQ(code, 0);                                                                \
  } while (false)

TEST(HangTest, AStopEndsAWorkerWhoseExecHangs) {
  EXPECT_ALL_WELL(with_hanging_script([](const std::string& script) {
    Driver driver;
    driver.guardian.spawn(Driver::request(1, {script}));
    driver.guardian.stop(SIGTERM, 600s);
    const auto stopped = driver.await<Stopped>();
    return stopped && stopped->remaining == 0 ? 0 : 1;
  }));
}

TEST(HangTest, MoreThanTheGuardianCanStartAtATimeAreStopped) {
  EXPECT_ALL_WELL(with_hanging_script([](const std::string& script) {
    Driver driver;
    for (WorkerId id = 0; id < 100; ++id)
      driver.guardian.spawn(Driver::request(id, {script}));
    if (!eventually([&] { return descendants().size() > 3; })) return 1;
    driver.guardian.stop(SIGTERM, 600s);
    if (!driver.await<Stopped>()) return 2;
    // The next round starts as if nothing had been.
    driver.guardian.spawn(Driver::shell(200, "exit 3"));
    const auto exited = driver.await<Exited>(200);
    return exited && exited->status.code == 3 ? 0 : 3;
  }));
}

// The thread that starts programs, beside the guardian's own.
pid_t helper_of(pid_t guardian) {
  const std::string tasks = "/proc/" + std::to_string(guardian) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks))
    if (const pid_t thread = std::stoi(task.path().filename().string()); thread != guardian)
      return thread;
  return 0;
}

// Only then is there a process to signal, and what it was to hear goes to it.
TEST(HangTest, AStopEndsAWorkerThatHasAProcessLater) {
#ifdef DRUN_TSAN
  GTEST_SKIP() << "the guardian has a thread of the sanitizer's as well";
#endif
  EXPECT_ALL_WELL(with_hanging_script([](const std::string& script) {
    Driver driver;
    Pipe out;
    if (driver.start(1, kStubborn, out) != "ready") return 1;
    const auto stubborn = driver.await<Spawned>(1);
    if (!stubborn) return 2;
    drun::test::HeldThread helper(helper_of(driver.guardian.pid()));
    if (!helper.holds()) return kCannotHang;
    driver.guardian.spawn(Driver::request(2, {script}));
    if (!helper.go_on_to({SYS_clone3, SYS_clone})) return 3;
    driver.guardian.stop(SIGTERM, 600s);
    if (read_line(out.read.get()) != "asked") return 4;
    ::kill(stubborn->pid, SIGKILL);
    if (!driver.await<Exited>(1)) return 5;
    helper.let_go();
    const auto stopped = driver.await<Stopped>();
    return stopped && stopped->remaining == 0 ? 0 : 6;
  }));
}

TEST(HangTest, TheAgentsEndEndsAWorkerWhoseExecHangs) {
  EXPECT_ALL_WELL(with_hanging_script([](const std::string& script) {
    {
      Driver driver;
      driver.guardian.spawn(Driver::request(1, {script}));
      if (!eventually([&] { return descendants().size() > 2; })) return 1;
    }
    return descendants().empty() ? 0 : 2;
  }));
}

TEST(HangTest, AnExecThatHangsKeepsNoOtherWorkersEndFromBeingHeard) {
  EXPECT_ALL_WELL(with_hanging_script([](const std::string& script) {
    Driver driver;
    driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
    const auto sleeper = driver.await<Spawned>(1);
    driver.guardian.spawn(Driver::request(2, {script}));
    if (!eventually([&] { return descendants().size() > 3; })) return 1;
    ::kill(sleeper->pid, SIGKILL);
    return driver.await<Exited>(1) ? 0 : 2;
  }));
}

TEST(HangTest, AStopWakesAGuardianThatWasStopped) {
  Driver driver;
  driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
  ASSERT_TRUE(driver.await<Spawned>(1));
  ::kill(driver.guardian.pid(), SIGSTOP);
  driver.guardian.stop(SIGTERM, 600s);
  EXPECT_TRUE(driver.await<Stopped>());
}

TEST(HangTest, AGuardianThatDoesNotStopTheWorkersInTimeIsKilled) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, kStubborn, out), "ready");
  driver.guardian.stop(SIGTERM, 1s);
  ASSERT_EQ(read_line(out.read.get()), "asked");
  ::kill(driver.guardian.pid(), SIGSTOP);
  const auto lost = driver.await<GuardianLost>();
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->hung);
  EXPECT_EQ(describe(*lost), "drun's guardian process did not answer and was killed");
  EXPECT_EQ(read_all(out.read.get()), "") << "the worker is gone";
}

TEST(HangTest, WhatIsGivenUpIsGoneAtOnceWhateverTheGrace) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, kStubborn, out), "ready");
  driver.guardian.stop(SIGTERM, 600s);
  ASSERT_EQ(read_line(out.read.get()), "asked");
  ::kill(driver.guardian.pid(), SIGSTOP);
  driver.guardian.give_up();
  ASSERT_TRUE(driver.await<GuardianLost>());
  EXPECT_EQ(read_all(out.read.get()), "");
}

// Not for as long as the helpers hope that it dies.
TEST(HangTest, WhatIsGivenUpAndCannotBeKilledIsNotWaitedFor) {
  constexpr int kCannotTrace = 77;
  const int result = in_child([] {
    std::optional<drun::test::Debugger> debugger;
    Clock::time_point begin;
    const auto in_time = [&begin] { return Clock::now() - begin < kGiveUpLimit + kKillLimit; };
    {
      Driver driver;
      driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
      const auto spawned = driver.await<Spawned>(1);
      if (!spawned) return 1;
      debugger.emplace(spawned->pid);
      if (!debugger->holds()) return kCannotTrace;
      driver.guardian.stop(SIGKILL, 0s);
      begin = Clock::now();
      driver.guardian.give_up();
      if (!driver.await<GuardianLost>(std::function<bool(const GuardianLost&)>())) return 2;
      if (!in_time()) return 3;
    }
    if (!in_time()) return 4;
    // What was left behind ends by itself.
    debugger->release();
    return eventually([] { return !reap_children([](const Reaped&) {}); }) ? 0 : 5;
  });
  if (result == kCannotTrace) GTEST_SKIP() << "ptrace is not allowed here";
  EXPECT_EQ(result, 0);
}

TEST(HangTest, AWatchdogThatWasStoppedIsWokenToSayThatTheGuardianIsGone) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, kStubborn, out), "ready");
  const pid_t guardian = driver.guardian.pid();
  const pid_t watchdog = parent_of(guardian);
  ::kill(watchdog, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(watchdog) == 'T'; }));
  ::kill(guardian, SIGKILL);
  EXPECT_TRUE(driver.await<GuardianLost>());
  EXPECT_EQ(read_all(out.read.get()), "");
}

TEST(HangTest, BothHelpersThatWereStoppedAreWokenAtTheEnd) {
  const int result = in_child([] {
    {
      Driver driver;
      Pipe out;
      if (driver.start(1, kStubborn, out) != "ready") return 1;
      const pid_t guardian = driver.guardian.pid();
      ::kill(guardian, SIGSTOP);
      ::kill(parent_of(guardian), SIGSTOP);
    }
    return descendants().empty() ? 0 : 2;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace drun::process::test
