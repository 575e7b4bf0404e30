#include "launcher/process/guardian.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/guardian_driver.hpp"

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

TEST(GuardianTest, StopEndsEarlyWhenAllObeyTheSignal) {
  Driver driver;
  for (WorkerId id = 0; id < 4; ++id) {
    driver.guardian.spawn(Driver::request(id, {"sleep", "1000"}));
    ASSERT_TRUE(driver.await<Spawned>(id));
  }
  const auto before = Clock::now();
  driver.guardian.stop(SIGTERM, 60s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_LT(Clock::now() - before, 5s);
  EXPECT_EQ(stopped->killed, 0U);
  for (WorkerId id = 0; id < 4; ++id) {
    const auto exited = driver.await<Exited>(id);
    ASSERT_TRUE(exited);
    EXPECT_EQ(exited->status.signal, SIGTERM);
  }
}

TEST(GuardianTest, StopKillsWhatIgnoresTheSignalWhenTheGraceIsOver) {
  Driver driver;
  Pipe out;
  auto request = Driver::shell(1, "trap '' TERM; echo ready; sleep 1000; sleep 1000");
  request.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(request));
  ASSERT_EQ(read_line(out.read.get()), "ready");
  driver.guardian.stop(SIGTERM, 50ms);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_GE(stopped->killed, 1U);
  EXPECT_EQ(stopped->remaining, 0U);
  EXPECT_EQ(driver.await<Exited>(1)->status.signal, SIGKILL);
}

TEST(GuardianTest, StopReachesWhatLeftItsSessionAndItsParent) {
  Driver driver;
  Pipe out;
  auto request =
      Driver::shell(1, "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & exit 0");
  request.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(request));
  const pid_t daemon = std::stoi(read_line(out.read.get()));
  ASSERT_TRUE(driver.await<Exited>(1));
  EXPECT_FALSE(gone(daemon));
  driver.guardian.stop(SIGTERM, 20ms);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->killed, 1U);
  EXPECT_TRUE(gone(daemon));
}

TEST(GuardianTest, SignalGoesToTheGroupOfOneWorkerOrOfAll) {
  Driver driver;
  std::vector<Pipe> out(3);
  for (WorkerId id = 0; id < 3; ++id) {
    auto request = Driver::shell(
        id,
        "trap 'echo usr1' USR1; trap 'echo usr2' USR2; echo ready; while :; do sleep 0.02; done");
    request.standard_output = std::move(out[id].write);
    driver.guardian.spawn(std::move(request));
    ASSERT_EQ(read_line(out[id].read.get()), "ready");
  }
  // The sleeps of the group die of the signal, the shells that trap it go on.
  driver.guardian.signal(1, SIGUSR1);
  EXPECT_EQ(read_line(out[1].read.get()), "usr1");
  driver.guardian.signal_all(SIGUSR2);
  for (auto& pipe : out)
    EXPECT_EQ(read_line(pipe.read.get()), "usr2");
}

TEST(GuardianTest, ProgramThatCannotRunIsAnErrorWithItsPath) {
  Driver driver;
  driver.guardian.spawn(Driver::request(1, {"/no/such/program"}));
  driver.guardian.spawn(Driver::request(2, {"no-such-program"}));
  driver.guardian.spawn(Driver::request(3, {"/etc/passwd"}));
  auto request = Driver::request(4, {"true"});
  request.working_directory = "/no/such/directory";
  driver.guardian.spawn(std::move(request));
  const auto one = driver.await<SpawnFailed>(1);
  const auto two = driver.await<SpawnFailed>(2);
  const auto three = driver.await<SpawnFailed>(3);
  const auto four = driver.await<SpawnFailed>(4);
  ASSERT_TRUE(one && two && three && four);
  EXPECT_EQ(one->error, ENOENT);
  EXPECT_EQ(one->attempted, "exec /no/such/program");
  EXPECT_EQ(two->error, ENOENT);
  EXPECT_EQ(two->attempted, "exec no-such-program");
  EXPECT_EQ(three->error, EACCES);
  EXPECT_EQ(three->attempted, "exec /etc/passwd");
  EXPECT_EQ(four->error, ENOENT);
  EXPECT_EQ(four->attempted, "chdir /no/such/directory");
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
  auto request = Driver::shell(1, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
  request.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(request));
  const pid_t grandchild = std::stoi(read_line(out.read.get()));
  ::kill(driver.guardian.pid(), SIGKILL);
  const auto lost = driver.await<GuardianLost>();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->status.signal, SIGKILL);
  EXPECT_TRUE(gone(grandchild));
}

}  // namespace
}  // namespace drun::process::test
