// Workers run only under a lease that guardian and watchdog hold, whoever else stands still.
#include "launcher/process/lease.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "launcher/process/descendants.hpp"
#include "support/debugger.hpp"
#include "support/guardian_driver.hpp"
#include "support/hide_proc.hpp"
#include "support/in_child.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kShort = 300ms;
constexpr auto kLong = std::chrono::hours(1);

class LeaseTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  pid_t start_worker(Driver& driver) {
    return std::atoi(driver.start(1, "trap '' TERM; echo $$; exec sleep 1000", out_).c_str());
  }

 private:
  Pipe out_;
};

TEST_F(LeaseTest, ItsEndEndsTheWorkers) {
  Driver driver;
  driver.guardian.renew_lease(Clock::now(), kLong);
  const pid_t worker = start_worker(driver);
  ASSERT_TRUE(driver.await<Spawned>(1));
  // That of another guardian does not matter here.
  EXPECT_TRUE(alive(worker));
  Driver other;
  other.guardian.spawn(Driver::shell(2, "sleep 1000 & setsid sleep 1000"));
  ASSERT_TRUE(other.await<Spawned>(2));
  other.guardian.renew_lease(Clock::now(), kShort);
  const auto told = other.await<LeaseOver>(std::function<bool(const LeaseOver&)>());
  ASSERT_TRUE(told);
  const auto exited = other.await<Exited>(2);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.signal, SIGKILL);
  EXPECT_FALSE(exited->out_of_memory);
  other.guardian.stop(SIGTERM, kPatience);
  const auto stopped = other.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->remaining, 0U);
  EXPECT_TRUE(alive(worker));
}

TEST_F(LeaseTest, NoWorkerStartsAfterItsEndUntilItIsRenewed) {
  Driver driver;
  driver.guardian.renew_lease(Clock::now(), -1s);
  driver.guardian.spawn(Driver::shell(1, "exit 7"));
  EXPECT_TRUE(driver.await<LeaseOver>(std::function<bool(const LeaseOver&)>()));
  const auto failed = driver.await<SpawnFailed>(1);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error, ECANCELED);
  driver.guardian.renew_lease(Clock::now(), kLong);
  driver.guardian.spawn(Driver::shell(2, "exit 7"));
  const auto exited = driver.await<Exited>(2);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.code, 7);
}

TEST_F(LeaseTest, SuspendedWorkersWaitForItsRenewal) {
  Driver driver;
  const pid_t worker = start_worker(driver);
  driver.guardian.signal_all(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(worker) == 'T'; }));
  // Over, for the watchdog too.
  driver.guardian.renew_lease(Clock::now(), -1s);
  driver.guardian.signal_all(SIGCONT);
  driver.guardian.spawn(Driver::shell(2, "exit 0"));
  EXPECT_TRUE(driver.await<SpawnFailed>(2));
  EXPECT_EQ(state_of(worker), 'T');
  driver.guardian.renew_lease(Clock::now(), kLong);
  EXPECT_TRUE(eventually([&] { return state_of(worker) == 'S'; }));
}

// It wakes with old renewals in its hands; the newer ones found no room.
TEST_F(LeaseTest, AWatchdogThatWasStoppedWaitsForAnotherRenewal) {
  constexpr auto kLength = 2s;
  Driver driver;
  const pid_t worker = start_worker(driver);
  const pid_t watchdog = parent_of(driver.guardian.pid());
  ::kill(watchdog, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(watchdog) == 'T'; }));
  const auto begin = Clock::now();
  for (int i = 0; i < 2000; ++i)
    driver.guardian.renew_lease(begin, kLength);
  driver.guardian.renew_lease(Clock::now(), kLong);
  // Long after its end, as the watchdog knows it.
  ASSERT_TRUE(eventually([&] {
    (void)driver.guardian.receive();  // sends what the guardian had no room for
    return Clock::now() > begin + kLength + 2s;
  }));
  ::kill(watchdog, SIGCONT);
  ASSERT_TRUE(eventually([&] { return state_of(watchdog) == 'S'; }));
  driver.guardian.renew_lease(Clock::now(), kLong);
  driver.guardian.spawn(Driver::shell(2, "exit 7"));
  EXPECT_TRUE(driver.await<Exited>(2));
  EXPECT_TRUE(alive(worker));
}

// It does what can be done: nobody has to do it in its place.
TEST_F(LeaseTest, AGuardianThatKillsWhatSigkillDoesNotEndIsLeftAlone) {
  Driver driver;
  const pid_t worker = start_worker(driver);
  const drun::test::Debugger debugger(worker);
  if (!debugger.holds()) GTEST_SKIP() << "ptrace is not allowed here";
  driver.guardian.renew_lease(Clock::now(), kShort);
  ASSERT_TRUE(driver.await<LeaseOver>(std::function<bool(const LeaseOver&)>()));
  // While it kills, and when it has given up.
  driver.guardian.stop(SIGKILL, 0s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->remaining, 1U);
  const auto given_up = Clock::now();
  ASSERT_TRUE(eventually([&] { return Clock::now() > given_up + 2s; }));
  driver.guardian.renew_lease(Clock::now(), kLong);
  driver.guardian.spawn(Driver::shell(2, "exit 7"));
  EXPECT_TRUE(driver.await<Exited>(2));
}

// It cannot see the workers, but it can end the guardian, whose workers the kernel ends with it.
TEST_F(LeaseTest, AGuardianThatStandsStillKeepsNoWorkersWithoutProc) {
#if defined(DRUN_ASAN) || defined(DRUN_TSAN)
  GTEST_SKIP() << "a sanitizer needs /proc";
#endif
  constexpr int kNotAllowed = 77;
  const int result = in_child([] {
    if (!hide_proc()) return kNotAllowed;
    Driver driver;
    Pipe out;
    if (driver.start(1, "setsid sleep 1000 & echo ready; exec sleep 1000", out) != "ready")
      return 1;
    ::kill(driver.guardian.pid(), SIGSTOP);
    driver.guardian.renew_lease(Clock::now(), kShort);
    const auto lost = driver.await<GuardianLost>(std::function<bool(const GuardianLost&)>());
    if (!lost || lost->hung) return 2;
    return read_all(out.read.get()).empty() ? 0 : 3;
  });
  if (result == kNotAllowed) GTEST_SKIP() << "no right to cover /proc here";
  EXPECT_EQ(result, 0);
}

TEST_F(LeaseTest, HelpersThatAreBothStoppedEndTheWorkersWhenTheyAreWoken) {
  Driver driver;
  const pid_t worker = start_worker(driver);
  const pid_t guardian = driver.guardian.pid();
  const pid_t watchdog = parent_of(guardian);
  ::kill(watchdog, SIGSTOP);
  ::kill(guardian, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(guardian) == 'T' && state_of(watchdog) == 'T'; }));
  driver.guardian.renew_lease(Clock::now(), kShort);
  driver.guardian.wake();
  EXPECT_TRUE(eventually([&] { return !alive(worker); }));
}

// The agent is a process of its own, which stands still.
TEST_F(LeaseTest, AnAgentThatStandsStillKeepsNoWorkers) {
  for (const bool guardian_too : {false, true}) {
    Pipe report;
    const pid_t agent = ::fork();
    if (agent == 0) {
      Driver driver;
      Pipe out;
      const std::string worker = driver.start(1, "trap '' TERM; echo $$; exec sleep 1000", out);
      if (guardian_too) ::kill(driver.guardian.pid(), SIGSTOP);
      driver.guardian.renew_lease(Clock::now(), 2s);
      const std::string told = std::to_string(driver.guardian.pid()) + "\n" + worker + "\n";
      if (::write(report.write.get(), told.data(), told.size()) < 0) ::_exit(1);
      ::raise(SIGSTOP);
      if (guardian_too)
        ::_exit(driver.await<GuardianLost>(std::function<bool(const GuardianLost&)>()) ? 0 : 2);
      ::_exit(driver.await<LeaseOver>(std::function<bool(const LeaseOver&)>()) ? 0 : 3);
    }
    const pid_t guardian = std::atoi(read_line(report.read.get()).c_str());
    const pid_t worker = std::atoi(read_line(report.read.get()).c_str());
    ASSERT_TRUE(eventually([&] { return state_of(agent) == 'T'; }));
    EXPECT_TRUE(eventually([&] { return !alive(worker); })) << guardian_too;
    EXPECT_TRUE(eventually([&] { return alive(guardian) == !guardian_too; }));
    ::kill(agent, SIGCONT);
    int status = -1;
    EXPECT_EQ(::waitpid(agent, &status, 0), agent);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(kill_descendants(kPatience, [](const Reaped&) {}));
  }
}

}  // namespace
}  // namespace drun::process::test
