// No survivors: whatever way the agent, its guardian and its watchdog end, and whatever kind of
// process the workers have started, nothing is left. The test is a child subreaper, so all that
// would outlive a job becomes its own child, and "no child left" is exact.
//
// DRUN_SURVIVOR_ROUNDS=N repeats each case N times.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/guardian.hpp"
#include "support/guardian_driver.hpp"
#include "support/hide_proc.hpp"
#include "support/places.hpp"
#include "support/survivors.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

// The promise is a second on a machine with room; a test machine may be busy.
constexpr auto kSettle = 60s;
constexpr int kWorkers = 2;
// What an agent that ended in order returns when the guardian had nothing left below it.
constexpr int kClean = 17;

enum class End {
  Success,
  Failure,
  Terminated,  // a stop with a grace
  Dropped,     // the handle is destroyed without a stop
  KillAgent,
  KillGuardian,
  KillWatchdog,  // then the agent, a moment later
  KillAgentThenGuardian,
  KillGuardianThenAgent,
  KillAgentAndGuardian,
  KillWatchdogAndGuardian,
  KillWatchdogAndAgent,
  StopGuardianKillAgent,
  StopWatchdogKillAgent,
  KillAgentThenWatchdog,
  KillAgentStopGuardian,
  KillAgentStopWatchdog,
  StopGuardianKillWatchdogAndAgent,
  KillGuardianStopWatchdogKillAgent,
  StopBothKillAgent,
};

const struct {
  End end;
  const char* name;
} kEnds[] = {
    {End::Success, "Success"},
    {End::Failure, "Failure"},
    {End::Terminated, "Terminated"},
    {End::Dropped, "Dropped"},
    {End::KillAgent, "KillAgent"},
    {End::KillGuardian, "KillGuardian"},
    {End::KillWatchdog, "KillWatchdog"},
    {End::KillAgentThenGuardian, "KillAgentThenGuardian"},
    {End::KillGuardianThenAgent, "KillGuardianThenAgent"},
    {End::KillAgentAndGuardian, "KillAgentAndGuardian"},
    {End::KillWatchdogAndGuardian, "KillWatchdogAndGuardian"},
    {End::KillWatchdogAndAgent, "KillWatchdogAndAgent"},
    {End::StopGuardianKillAgent, "StopGuardianKillAgent"},
    {End::StopWatchdogKillAgent, "StopWatchdogKillAgent"},
    {End::KillAgentThenWatchdog, "KillAgentThenWatchdog"},
    {End::KillAgentStopGuardian, "KillAgentStopGuardian"},
    {End::KillAgentStopWatchdog, "KillAgentStopWatchdog"},
    {End::StopGuardianKillWatchdogAndAgent, "StopGuardianKillWatchdogAndAgent"},
    {End::KillGuardianStopWatchdogKillAgent, "KillGuardianStopWatchdogKillAgent"},
    {End::StopBothKillAgent, "StopBothKillAgent"},
};

bool ends_by_itself(End end) {
  return end <= End::Dropped;
}

// Where the job runs.
struct Place {
  std::string cgroup;  // empty: none
  bool without_proc = false;
};

bool can_hide_proc() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hide_proc() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The agent's whole life, in a process of its own. Tells the guardian's process id when all workers
// are ready.
int run_agent(End end, const std::string& kind, const Place& place, int report,
              const std::string& folder) {
  const auto& cgroup = place.cgroup;
  if (place.without_proc && !hide_proc()) return 7;
  GuardianOptions options;
  options.use_cgroup = !cgroup.empty();
  options.cgroup_parent = cgroup;
  Driver driver(options);
  driver.guardian.remove_at_end(folder);
  const bool exits = end == End::Success || end == End::Failure;
  for (WorkerId id = 0; id < kWorkers; ++id) {
    Pipe out;
    std::vector<std::string> argv{places::test_program("survivor"), kind, exits ? "exit" : "stay",
                                  end == End::Failure ? "3" : "0"};
    auto request = Driver::request(id, std::move(argv));
    request.standard_output = std::move(out.write);
    driver.guardian.spawn(std::move(request));
    if (read_line(out.read.get()) != "ready") return 1;
  }
  if (exits) {
    for (WorkerId id = 0; id < kWorkers; ++id)
      if (!driver.await<Exited>(id)) return 2;
  }
  const pid_t guardian = driver.guardian.pid();
  if (::write(report, &guardian, sizeof guardian) != sizeof guardian) return 3;
  if (end == End::Dropped) return kClean;
  if (ends_by_itself(end)) {
    driver.guardian.stop(SIGTERM, 30ms);
    const auto stopped = driver.await<Stopped>();
    if (!stopped || stopped->remaining != 0) return 4;
    return descendants().size() == (place.without_proc ? 1U : 2U) ? kClean : 5;
  }
  return driver.await<GuardianLost>(std::function<bool(const GuardianLost&)>()) ? kClean : 6;
}

// Stops a helper, unless it is at its end already and the other one is gone: nobody could wake it.
void stop_beside(pid_t other, pid_t helper) {
  ::kill(helper, SIGSTOP);
  const auto status = read_small_file("/proc/" + std::to_string(other) + "/status").value_or("");
  const auto pending = status.find("ShdPnd:\t");
  const bool lives =
      alive(other) && pending != std::string::npos &&
      (std::stoull(status.substr(pending + 8), nullptr, 16) >> (SIGKILL - 1)) % 2 == 0;
  if (!lives) ::kill(helper, SIGCONT);
}

// `gap` between the two blows.
void strike(End end, pid_t agent, const Helpers& helpers, std::chrono::microseconds gap) {
  switch (end) {
    case End::KillAgent:
      return kill_now(agent);
    case End::KillGuardian:
      return kill_now(helpers.guardian);
    case End::KillWatchdog:
      kill_now(helpers.watchdog);
      (void)eventually([&] { return ::kill(helpers.watchdog, 0) != 0; });
      return kill_now(agent);
    case End::KillAgentThenGuardian:
      kill_now(agent);
      spin(gap);
      return kill_now(helpers.guardian);
    case End::KillGuardianThenAgent:
      kill_now(helpers.guardian);
      spin(gap);
      return kill_now(agent);
    case End::KillAgentAndGuardian:
      kill_now(agent);
      return kill_now(helpers.guardian);
    case End::KillWatchdogAndGuardian:
      kill_now(helpers.watchdog);
      spin(gap);
      return kill_now(helpers.guardian);
    case End::KillWatchdogAndAgent:
      kill_now(helpers.watchdog);
      spin(gap);
      return kill_now(agent);
    case End::StopGuardianKillAgent:
      ::kill(helpers.guardian, SIGSTOP);
      spin(gap);
      return kill_now(agent);
    case End::StopWatchdogKillAgent:
      ::kill(helpers.watchdog, SIGSTOP);
      spin(gap);
      return kill_now(agent);
    case End::KillAgentThenWatchdog:
      kill_now(agent);
      spin(gap);
      return kill_now(helpers.watchdog);
    case End::KillAgentStopGuardian:
      kill_now(agent);
      spin(gap);
      return stop_beside(helpers.watchdog, helpers.guardian);
    case End::KillAgentStopWatchdog:
      kill_now(agent);
      spin(gap);
      return stop_beside(helpers.guardian, helpers.watchdog);
    case End::StopGuardianKillWatchdogAndAgent:
      ::kill(helpers.guardian, SIGSTOP);
      kill_now(helpers.watchdog);
      spin(gap);
      return kill_now(agent);
    case End::KillGuardianStopWatchdogKillAgent:
      kill_now(helpers.guardian);
      stop_beside(agent, helpers.watchdog);
      spin(gap);
      return kill_now(agent);
    case End::StopBothKillAgent:
      ::kill(helpers.guardian, SIGSTOP);
      ::kill(helpers.watchdog, SIGSTOP);
      spin(gap);
      return kill_now(agent);
    default:
      return;
  }
}

class SurvivorTest : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() {
    bystander_ = std::make_unique<Bystander>();
    cgroup_ = std::make_unique<DelegatedGroup>();
    if (cgroup_->path().empty()) std::puts("without a cgroup: none can be made here");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  static void TearDownTestSuite() {
    bystander_.reset();
    cgroup_.reset();
  }
  void TearDown() override {
    ASSERT_TRUE(kill_descendants(60s, [](const Reaped&) {})) << describe_survivors();
  }

  // Returns how long the last process lived after the end.
  void run(End end, const std::string& kind, const Place& place, std::chrono::microseconds gap) {
    Pipe report;
    const drun::test::TemporaryDirectory directory;
    const std::string folder = directory.file("of the agent");
    std::filesystem::create_directories(folder + "/inner");
    const pid_t agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) {
      report.read.reset();
      int code = 99;
      try {
        code = run_agent(end, kind, place, report.write.get(), folder);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "agent: %s\n", error.what());
      }
      ::_exit(code);
    }
    report.write.reset();
    Helpers helpers;
    pollfd entry{report.read.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, static_cast<int>(kPatience.count())), 1)
        << "the workers did not become ready";
    ASSERT_EQ(::read(report.read.get(), &helpers.guardian, sizeof helpers.guardian),
              static_cast<ssize_t>(sizeof helpers.guardian))
        << "the agent ended before its workers were ready";
    helpers.watchdog = parent_of(helpers.guardian);
    strike(end, agent, helpers, gap);
    const auto before = Clock::now();
    const auto agent_status = await_nobody(agent, kSettle);
    ASSERT_TRUE(agent_status) << "left after " << kSettle.count() << " s:" << describe_survivors();
    EXPECT_TRUE(cgroup_->leftovers().empty()) << cgroup_->leftovers().front();
    EXPECT_TRUE(bystander_->lives());
    // Without both helpers the agent, which is alive, removes it itself.
    EXPECT_EQ(std::filesystem::exists(folder), end == End::KillWatchdogAndGuardian);
    longest_ = std::max(longest_, std::chrono::ceil<milliseconds>(Clock::now() - before));
    const bool may_live_on =
        ends_by_itself(end) || end == End::KillGuardian || end == End::KillWatchdogAndGuardian ||
        end == End::KillGuardianThenAgent || end == End::KillGuardianStopWatchdogKillAgent;
    const bool may_be_killed =
        !ends_by_itself(end) && end != End::KillGuardian && end != End::KillWatchdogAndGuardian;
    EXPECT_TRUE((may_live_on && *agent_status == ExitStatus{kClean, 0, false}) ||
                (may_be_killed && agent_status->signal == SIGKILL))
        << describe(*agent_status);
  }

  milliseconds longest_{0};
  inline static std::unique_ptr<Bystander> bystander_;
  inline static std::unique_ptr<DelegatedGroup> cgroup_;
};

TEST_P(SurvivorTest, NothingIsLeft) {
  const End end = kEnds[GetParam()].end;
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < survivor_rounds(); ++round) {
    for (const auto& kind : survivor_kinds()) {
      for (const std::string& cgroup : {std::string(), cgroup_->path()}) {
        const std::chrono::microseconds gap(random() % 3000);
        SCOPED_TRACE(kind + (cgroup.empty() ? "" : " in a cgroup") + ", round " +
                     std::to_string(round) + ", gap " + std::to_string(gap.count()) + " us");
        run(end, kind, {cgroup, false}, gap);
        if (HasFatalFailure()) return;
      }
    }
  }
  RecordProperty("longest_ms", std::to_string(longest_.count()));
  if (std::getenv("DRUN_SURVIVOR_ROUNDS") != nullptr)
    std::printf("longest time to the last death: %lld ms\n",
                static_cast<long long>(longest_.count()));
}

// A container may hide /proc. One kind is left out: what forks as fast as it can, each time into a
// session of its own, is caught only by luck there.
TEST_P(SurvivorTest, NothingIsLeftWithoutProc) {
  const End end = kEnds[GetParam()].end;
#if defined(DRUN_ASAN) || defined(DRUN_TSAN)
  GTEST_SKIP() << "a sanitizer needs /proc";
#endif
  if (!can_hide_proc()) GTEST_SKIP() << "no right to cover /proc here";
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < survivor_rounds(); ++round) {
    for (const auto& kind : survivor_kinds()) {
      if (kind == "respawner") continue;
      const std::chrono::microseconds gap(random() % 3000);
      SCOPED_TRACE(kind + ", round " + std::to_string(round));
      run(end, kind, {"", true}, gap);
      if (HasFatalFailure()) return;
    }
  }
  RecordProperty("longest_ms", std::to_string(longest_.count()));
}

// Killing many takes some milliseconds; whoever dies or is stopped just then, nothing is left.
TEST_P(SurvivorTest, NothingIsLeftOfManyWhateverTheGap) {
  const End end = kEnds[GetParam()].end;
  if (ends_by_itself(end)) GTEST_SKIP() << "one blow only";
  for (int round = 0; round < survivor_rounds(); ++round) {
    for (const int ms : {0, 1, 2, 4, 10, 20, 50}) {
      SCOPED_TRACE("gap " + std::to_string(ms) + " ms, round " + std::to_string(round));
      run(end, "herd", {}, std::chrono::milliseconds(ms));
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, SurvivorTest, testing::Range(std::size_t{0}, std::size(kEnds)),
                         [](const auto& test) { return std::string(kEnds[test.param].name); });

}  // namespace
}  // namespace drun::process::test
