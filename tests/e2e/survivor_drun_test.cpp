// No survivors of the real drun: how it ends, by its own decision or by anybody's, against the
// kinds of process that workers leave behind. The matrix over the library alone is survivor_test.
//
// DRUN_SURVIVOR_ROUNDS=N repeats each case N times.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/process/descendants.hpp"
#include "support/guardian_driver.hpp"
#include "support/places.hpp"
#include "support/survivors.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;

// The promise is a second after the stop, and --shutdown-timeout is 50 ms; a test machine may be
// busy, and what is forgotten lives for ever.
constexpr auto kSettle = 60s;

enum class End {
  Success,
  Failure,
  Terminate,
  Interrupt,
  InterruptTwice,
  KillDrun,
  KillGuardian,
  KillDrunThenGuardian,
  KillGuardianThenDrun,
  KillBoth,
  KillByName,  // whatever has "drun" in its name
};

const struct {
  End end;
  const char* name;
  int code;  // of drun, as a shell gives it
} kEnds[] = {
    {End::Success, "Success", 0},
    {End::Failure, "Failure", 3},
    {End::Terminate, "Terminate", 128 + SIGTERM},
    {End::Interrupt, "Interrupt", 128 + SIGINT},
    {End::InterruptTwice, "InterruptTwice", 128 + SIGINT},
    {End::KillDrun, "KillDrun", 128 + SIGKILL},
    {End::KillGuardian, "KillGuardian", 125},
    {End::KillDrunThenGuardian, "KillDrunThenGuardian", 128 + SIGKILL},
    {End::KillGuardianThenDrun, "KillGuardianThenDrun", 128 + SIGKILL},
    {End::KillBoth, "KillBoth", 128 + SIGKILL},
    {End::KillByName, "KillByName", 128 + SIGKILL},
};

std::string name_of(pid_t pid) {
  return read_small_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
}

Helpers helpers_of_the_only_child() {
  Helpers helpers;
  for (const pid_t pid : descendants()) {
    const auto name = name_of(pid);
    if (name == "drun-guardian\n") helpers.guardian = pid;
    if (name == "job-keeper\n") helpers.watchdog = pid;
  }
  return helpers;
}

void strike(End end, pid_t drun, const Helpers& helpers, std::chrono::microseconds gap) {
  switch (end) {
    case End::Terminate:
      ::kill(drun, SIGTERM);
      return;
    case End::Interrupt:
      ::kill(drun, SIGINT);
      return;
    case End::InterruptTwice:
      ::kill(drun, SIGINT);
      spin(gap);
      ::kill(drun, SIGINT);
      return;
    case End::KillDrun:
      return kill_now(drun);
    case End::KillGuardian:
      return kill_now(helpers.guardian);
    case End::KillDrunThenGuardian:
      kill_now(drun);
      spin(gap);
      return kill_now(helpers.guardian);
    case End::KillGuardianThenDrun:
      kill_now(helpers.guardian);
      spin(gap);
      return kill_now(drun);
    case End::KillBoth:
      kill_now(drun);
      return kill_now(helpers.guardian);
    case End::KillByName:
      for (const pid_t pid : descendants())
        if (name_of(pid).find("drun") != std::string::npos) kill_now(pid);
      return;
    default:
      return;
  }
}

// The inodes of the sockets that a process has open.
std::vector<std::string> sockets_of(pid_t pid) {
  std::vector<std::string> result;
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with("socket:[")) result.push_back(target.substr(8, target.size() - 9));
  }
  return result;
}

// Those of the sockets that still exist: listening, connected or with a name.
std::string left_of(const std::vector<std::string>& sockets) {
  std::string left;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6", "/proc/net/unix"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);)
      for (const auto& inode : sockets)
        if (line.find(" " + inode + " ") != std::string::npos) left += line + "\n";
  }
  return left;
}

class SurvivorDrunTest : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() {
    bystander_ = std::make_unique<Bystander>();
    cgroup_ = std::make_unique<DelegatedGroup>();
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  static void TearDownTestSuite() {
    bystander_.reset();
    cgroup_.reset();
  }
  void TearDown() override {
    ASSERT_TRUE(kill_descendants(kSettle, [](const Reaped&) {})) << describe_survivors();
  }

  pid_t start(End end, const std::string& kind, bool cgroup, Pipe& out) {
    const bool exits = end == End::Success || end == End::Failure;
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    if (cgroup && !cgroup_->enter()) ::_exit(126);
    ::setenv("TMPDIR", temporary_.file("").c_str(), 1);
    ::dup2(out.write.get(), 1);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
    ::execl(places::program("drun").c_str(), "drun", "--standalone", "--nproc-per-node", "2",
            "--shutdown-timeout", "50ms", places::test_program("survivor").c_str(), kind.c_str(),
            exits ? "exit" : "stay", end == End::Failure ? "3" : "0", nullptr);
    ::_exit(127);
  }

  // Where drun ends by itself it is the last of all: nothing lives at the very moment it has ended.
  static void expect_last(pid_t drun) {
    siginfo_t info{};
    ASSERT_TRUE(eventually(
        [&] {
          return ::waitid(P_PID, static_cast<id_t>(drun), &info, WEXITED | WNOHANG | WNOWAIT) ==
                     0 &&
                 info.si_pid == drun;
        },
        kSettle))
        << "drun runs on";
    for (const pid_t pid : descendants())
      EXPECT_FALSE(alive(pid)) << "outlives drun:" << describe_survivors();
  }

  void run(End end, int code, const std::string& kind, bool cgroup, std::chrono::microseconds gap) {
    Pipe out;
    const pid_t drun = start(end, kind, cgroup, out);
    ASSERT_GT(drun, 0);
    out.write.reset();
    Helpers helpers;
    std::vector<std::string> sockets;
    if (end != End::Success && end != End::Failure) {
      for (int worker = 0; worker < 2; ++worker)
        ASSERT_EQ(read_line(out.read.get(), kSettle), "ready");
      // The watchdog takes its name when it gets to run, which may be later than the workers do.
      ASSERT_TRUE(eventually(
          [&] {
            helpers = helpers_of_the_only_child();
            return helpers.guardian > 0 && helpers.watchdog > 0;
          },
          kSettle));
      sockets = sockets_of(drun);
      ASSERT_FALSE(sockets.empty());
      EXPECT_FALSE(std::filesystem::is_empty(temporary_.file("")));
      EXPECT_EQ(cgroup_->leftovers().size(), cgroup ? 1U : 0U);
      strike(end, drun, helpers, gap);
    }
    const auto before = Clock::now();
    if (end <= End::InterruptTwice || end == End::KillGuardian) expect_last(drun);
    const auto status = await_nobody(drun, kSettle);
    ASSERT_TRUE(status) << "left after " << kSettle.count() << " s:" << describe_survivors();
    longest_ = std::max(longest_, std::chrono::ceil<milliseconds>(Clock::now() - before));
    // Between the two blows it may have seen the first.
    const bool ended_before = end == End::KillGuardianThenDrun && status->shell_code() == 125;
    EXPECT_TRUE(status->shell_code() == code || ended_before) << describe(*status);
    EXPECT_TRUE(cgroup_->leftovers().empty()) << cgroup_->leftovers().front();
    EXPECT_EQ(left_of(sockets), "");
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.file("")));
    EXPECT_TRUE(bystander_->lives());
  }

  drun::test::TemporaryDirectory temporary_;
  milliseconds longest_{0};
  inline static std::unique_ptr<Bystander> bystander_;
  inline static std::unique_ptr<DelegatedGroup> cgroup_;
};

TEST_P(SurvivorDrunTest, NothingIsLeft) {
  const auto& how = kEnds[GetParam()];
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int round = 0; round < survivor_rounds(); ++round) {
    bool cgroup = round % 2 == 1;
    for (const auto& kind : survivor_kinds()) {
      const std::chrono::microseconds gap(random() % 3000);
      cgroup = !cgroup && !cgroup_->path().empty();
      SCOPED_TRACE(kind + (cgroup ? " in a cgroup" : "") + ", round " + std::to_string(round) +
                   ", gap " + std::to_string(gap.count()) + " us");
      run(how.end, how.code, kind, cgroup, gap);
      if (HasFatalFailure()) return;
    }
  }
  if (std::getenv("DRUN_SURVIVOR_ROUNDS") != nullptr)
    std::printf("longest time to the last death: %lld ms\n",
                static_cast<long long>(longest_.count()));
}

INSTANTIATE_TEST_SUITE_P(Ends, SurvivorDrunTest, testing::Range(std::size_t{0}, std::size(kEnds)),
                         [](const auto& test) { return std::string(kEnds[test.param].name); });

}  // namespace
}  // namespace drun::process::test
