// How a round ends: the signal, the grace, the killing, and what is told.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/small_file.hpp"
#include "launcher/process/cgroup.hpp"
#include "launcher/process/guardian.hpp"
#include "support/debugger.hpp"
#include "support/guardian_driver.hpp"
#include "support/in_child.hpp"
#include "support/temporary_directory.hpp"

namespace drun::process::test {
namespace {

using namespace std::chrono_literals;
using drun::test::TemporaryDirectory;

TEST(StopTest, EndsEarlyWhenAllObeyTheSignal) {
  Driver driver;
  for (WorkerId id = 0; id < 4; ++id) {
    driver.guardian.spawn(Driver::request(id, {"sleep", "1000"}));
    ASSERT_TRUE(driver.await<Spawned>(id));
  }
  driver.guardian.stop(SIGTERM, 600s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped) << "long before the grace is over";
  EXPECT_EQ(stopped->killed, 0U);
  for (WorkerId id = 0; id < 4; ++id) {
    const auto exited = driver.await<Exited>(id);
    ASSERT_TRUE(exited);
    EXPECT_EQ(exited->status.signal, SIGTERM);
  }
}

TEST(StopTest, KillsWhatIgnoresTheSignalWhenTheGraceIsOver) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, "trap '' TERM; echo ready; sleep 1000; sleep 1000", out), "ready");
  driver.guardian.stop(SIGTERM, 50ms);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_GE(stopped->killed, 1U);
  EXPECT_EQ(stopped->remaining, 0U);
  EXPECT_EQ(driver.await<Exited>(1)->status.signal, SIGKILL);
}

TEST(StopTest, ReachesWhatLeftItsSessionAndItsParent) {
  Driver driver;
  Pipe out;
  const pid_t daemon = std::stoi(
      driver.start(1, "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000' & exit 0", out));
  ASSERT_TRUE(driver.await<Exited>(1));
  EXPECT_FALSE(gone(daemon));
  driver.guardian.stop(SIGTERM, 20ms);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->killed, 1U);
  EXPECT_TRUE(gone(daemon));
}

// As a shell does that forks while the signal comes: blocked, it waits for the parent, and the
// child begins without it.
TEST(StopTest, ReachesAChildThatWasForkedWhileTheSignalWaited) {
  Driver driver;
  Pipe out;
  auto worker = Driver::request(1, {"perl", "-e", R"(
      use POSIX;
      $| = 1;
      my $term = POSIX::SigSet->new(SIGTERM);
      my $pending = POSIX::SigSet->new;
      sigprocmask(SIG_BLOCK, $term);
      print "ready\n";
      do { select(undef, undef, undef, 0.01); sigpending($pending) }
        until $pending->ismember(SIGTERM);
      my $child = fork;
      sigprocmask(SIG_UNBLOCK, $term);
      exec "sleep", "1000";)"});
  worker.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(worker));
  ASSERT_EQ(read_line(out.read.get()), "ready");
  driver.guardian.stop(SIGTERM, 600s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped) << "long before the grace is over";
  EXPECT_EQ(stopped->killed, 0U);
  EXPECT_EQ(driver.await<Exited>(1)->status.signal, SIGTERM);
}

// What one does to end well is not the stop's business.
TEST(StopTest, LeavesAloneWhatAWorkerStartsBecauseOfTheSignal) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1,
                         "trap '(sleep 0.3; echo saved) & exit 3' TERM; echo ready;"
                         "while :; do sleep 0.05; done",
                         out),
            "ready");
  driver.guardian.stop(SIGTERM, 600s);
  EXPECT_EQ(read_line(out.read.get()), "saved");
  EXPECT_TRUE(driver.await<Stopped>());
}

// It ends by the very signal, after it has handled it.
TEST(StopTest, LeavesAloneWhatAWorkerStartsBeforeItDiesOfTheSignal) {
  const TemporaryDirectory directory;
  const std::string leader_is_gone = directory.file("leader_is_gone");
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1,
                         "trap 'trap - TERM; (until [ -e " + leader_is_gone +
                             " ]; do sleep 0.01; done; echo saved) & kill -TERM $$' TERM;"
                             "echo ready; while :; do sleep 0.05; done",
                         out),
            "ready");
  driver.guardian.stop(SIGTERM, 600s);
  const auto exited = driver.await<Exited>(1);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->status.signal, SIGTERM);
  std::ofstream(leader_is_gone).flush();
  EXPECT_EQ(read_line(out.read.get()), "saved");
  EXPECT_TRUE(driver.await<Stopped>());
}

TEST(StopTest, OfNothingIsOverAtOnce) {
  Driver driver;
  driver.guardian.stop(SIGTERM, 600s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->killed, 0U);
}

TEST(StopTest, TellsEveryEndBeforeItsOwn) {
  Driver driver;
  for (WorkerId id = 0; id < 20; ++id)
    driver.guardian.spawn(Driver::request(id, {"sleep", "1000"}));
  driver.guardian.stop(SIGTERM, 600s);
  ASSERT_TRUE(driver.await<Stopped>());
  // Those that the stop found waiting never begin.
  int ends = 0;
  for (const auto& event : driver.pending())
    ends += std::holds_alternative<Exited>(event) || std::holds_alternative<SpawnFailed>(event);
  EXPECT_EQ(ends, 20);
}

TEST(StopTest, WhatSigkillDoesNotEndIsNamedAndNotWaitedForForEver) {
  Driver driver;
  driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
  const auto spawned = driver.await<Spawned>(1);
  ASSERT_TRUE(spawned);
  drun::test::Debugger debugger(spawned->pid);
  if (!debugger.holds()) GTEST_SKIP() << "ptrace is not allowed here";
  driver.guardian.stop(SIGKILL, 0s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->remaining, 1U);
  EXPECT_EQ(stopped->first, spawned->pid);
  EXPECT_EQ(describe(Stopped{}), "");
  EXPECT_TRUE(describe(Stopped{1, 1, 0}).starts_with("the workers leave a process behind: "));
  EXPECT_EQ(describe(Stopped{1, 3, 4711}),
            "the workers leave process 4711 and 2 more behind: SIGKILL does not end them (another "
            "user's, held by a debugger, or hanging inside the kernel)");
  debugger.release();
  EXPECT_TRUE(driver.await<Exited>(1));
}

TEST(StopTest, SecondStopMayShortenTheGrace) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, "trap '' TERM; echo ready; while :; do sleep 1000; done", out),
            "ready");
  driver.guardian.stop(SIGTERM, 600s);
  driver.guardian.stop(SIGTERM, 30ms);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_GE(stopped->killed, 1U);
}

TEST(StopTest, SecondStopNeverLengthensTheGrace) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, "trap '' TERM; echo ready; while :; do sleep 1000; done", out),
            "ready");
  driver.guardian.stop(SIGTERM, 50ms);
  driver.guardian.stop(SIGTERM, 600s);
  EXPECT_TRUE(driver.await<Stopped>());
}

TEST(StopTest, SecondStopSendsItsSignalToo) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(
      driver.start(1, "trap '' TERM; trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done",
                   out),
      "ready");
  driver.guardian.stop(SIGTERM, 600s);
  driver.guardian.stop(SIGINT, 600s);
  ASSERT_TRUE(driver.await<Stopped>());
  EXPECT_EQ(driver.await<Exited>(1)->status.code, 9);
}

TEST(StopTest, WithKillThereIsNoGrace) {
  Driver driver;
  driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
  ASSERT_TRUE(driver.await<Spawned>(1));
  driver.guardian.stop(SIGKILL, 600s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->killed, 1U);
  EXPECT_EQ(driver.await<Exited>(1)->status.signal, SIGKILL);
}

TEST(StopTest, StoppedWorkerIsWokenToActOnTheSignal) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(
      driver.start(1, "trap 'exit 5' TERM; echo ready; kill -STOP $$; while :; do sleep 0.05; done",
                   out),
      "ready");
  const auto pid = driver.await<Spawned>(1)->pid;
  ASSERT_TRUE(eventually([&] {
    const auto stat = read_small_file("/proc/" + std::to_string(pid) + "/stat");
    return stat && stat->find(") T ") != std::string::npos;
  }));
  driver.guardian.stop(SIGTERM, 600s);
  const auto stopped = driver.await<Stopped>();
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->killed, 0U);
  EXPECT_EQ(driver.await<Exited>(1)->status.code, 5);
}

TEST(StopTest, EachProcessGetsTheSignalOnce) {
  // One in the worker's group, one that left it, one whose worker has ended.
  const std::string counter =
      "sh -c 'n=0; trap \"n=\\$((n+1)); echo \\$n\" TERM; echo ready; "
      "while [ $n -lt 1 ]; do sleep 0.02; done; sleep 0.2'";
  Driver driver;
  Pipe inside, outside, orphan;
  ASSERT_EQ(driver.start(1, counter + " & trap : TERM; wait; wait", inside), "ready");
  ASSERT_EQ(driver.start(2, "setsid " + counter + " & trap : TERM; wait; wait", outside), "ready");
  ASSERT_EQ(driver.start(3, counter + " & exit 0", orphan), "ready");
  ASSERT_TRUE(driver.await<Exited>(3));
  driver.guardian.stop(SIGTERM, 600s);
  ASSERT_TRUE(driver.await<Stopped>());
  EXPECT_EQ(read_all(inside.read.get()), "1\n");
  EXPECT_EQ(read_all(outside.read.get()), "1\n");
  EXPECT_EQ(read_all(orphan.read.get()), "1\n");
}

TEST(StopTest, WhatAWorkerLeftBehindStaysUntilTheRoundEnds) {
  Driver driver;
  Pipe out;
  const pid_t left = std::stoi(driver.start(1, "sleep 1000 & echo $!", out));
  ASSERT_TRUE(driver.await<Exited>(1));
  EXPECT_TRUE(alive(left));
  driver.guardian.stop(SIGTERM, 600s);
  ASSERT_TRUE(driver.await<Stopped>());
  EXPECT_TRUE(gone(left));
}

TEST(StopTest, NoWorkerStartsWhileOthersAreStopped) {
  Driver driver;
  Pipe out;
  ASSERT_EQ(driver.start(1, "trap '' TERM; echo ready; while :; do sleep 1000; done", out),
            "ready");
  driver.guardian.stop(SIGTERM, 600s);
  driver.guardian.spawn(Driver::request(2, {"sleep", "1000"}));
  const auto failed = driver.await<SpawnFailed>(2);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error, ECANCELED);
  driver.guardian.stop(SIGTERM, 0s);
  ASSERT_TRUE(driver.await<Stopped>());
  // The next round may start.
  driver.guardian.spawn(Driver::shell(3, "exit 3"));
  EXPECT_EQ(describe(driver.await<Exited>(3)->status), "exit code 3");
}

TEST(StopTest, ManyRoundsLeaveNothingInTheGuardian) {
  Driver driver;
  WorkerId id = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 4; ++i)
      driver.guardian.spawn(Driver::request(++id, {"sleep", "1000"}));
    driver.guardian.stop(SIGTERM, 600s);
    ASSERT_TRUE(driver.await<Stopped>());
  }
  const std::string directory = "/proc/" + std::to_string(driver.guardian.pid()) + "/fd/";
  int open = 0;
  const auto few_are_open = [&] {
    open = 0;
    for (int fd = 0; fd < 64; ++fd)
      open += ::access((directory + std::to_string(fd)).c_str(), F_OK) == 0;
    // Three streams, the agent's socket, child signals, /dev/null, the spawners' events, perhaps
    // the cgroup.
    return open <= 8;
  };
  EXPECT_TRUE(eventually(few_are_open)) << open;
}

TEST(StopTest, WorkersLiveInACgroupWhereOneMayBeMade) {
  const auto parent = find_delegated(find_cgroups());
  if (!parent) GTEST_SKIP() << "no cgroup v2 directory is delegated to this user";
  GuardianOptions options;
  options.cgroup_name = "drun-test-" + std::to_string(::getpid());
  Driver driver(options);
  Pipe out;
  auto request = Driver::request(1, {"cat", "/proc/self/cgroup"});
  request.standard_output = std::move(out.write);
  driver.guardian.spawn(std::move(request));
  const auto text = read_all(out.read.get());
  EXPECT_NE(text.find("/" + options.cgroup_name + "/0\n"), std::string::npos) << text;
  EXPECT_TRUE(driver.await<Exited>(1));
}

TEST(StopTest, CgroupThatIsGivenIsUsedAndRemoved) {
  const auto place = find_cgroups();
  const std::string parent = place.unified + "/drun-test-" + std::to_string(::getpid());
  if (place.unified.empty() || ::mkdir(parent.c_str(), 0755) != 0)
    GTEST_SKIP() << "may not make a cgroup v2 directory";
  std::string group;
  {
    GuardianOptions options;
    options.cgroup_parent = parent;
    options.cgroup_name = "group";
    Driver driver(options);
    group = parent + "/group";
    driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
    const auto spawned = driver.await<Spawned>(1);
    EXPECT_EQ(read_small_file(group + "/0/cgroup.procs"), std::to_string(spawned->pid) + "\n");
    // A worker may make groups of its own below.
    EXPECT_EQ(::mkdir((group + "/0/inner").c_str(), 0755), 0);
    EXPECT_TRUE(write_small_file(group + "/0/inner/cgroup.procs", std::to_string(spawned->pid)));
    driver.guardian.stop(SIGKILL, 0s);
    EXPECT_TRUE(driver.await<Stopped>());
  }
  EXPECT_NE(::access(group.c_str(), F_OK), 0);
  EXPECT_EQ(::rmdir(parent.c_str()), 0);
}

// Here it can be made, but it is none.
TEST(StopTest, AGroupThatCannotBeEnteredIsRemovedAtOnce) {
  const drun::test::TemporaryDirectory folder;
  GuardianOptions options;
  options.cgroup_parent = folder.file("");
  Driver driver(options);
  driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
  ASSERT_TRUE(driver.await<Spawned>(1)) << "without a group";
  EXPECT_TRUE(std::filesystem::is_empty(options.cgroup_parent));
}

// Two sandboxes may number their processes alike and share a delegated group.
TEST(StopTest, GroupsOfTwoGuardiansHaveDifferentNames) {
  const auto place = find_cgroups();
  const std::string parent = place.unified + "/drun-test-" + std::to_string(::getpid());
  if (place.unified.empty() || ::mkdir(parent.c_str(), 0755) != 0)
    GTEST_SKIP() << "may not make a cgroup v2 directory";
  const auto name_of_group = [&parent] {
    GuardianOptions options;
    options.cgroup_parent = parent;
    Driver driver(options);
    const std::string number = std::to_string(driver.guardian.pid());
    driver.guardian.spawn(Driver::request(1, {"sleep", "1000"}));
    if (!driver.await<Spawned>(1)) return std::string();
    for (const auto& entry : std::filesystem::directory_iterator(parent))
      if (entry.is_directory())
        return entry.path().filename() == "drun-" + number ? "" : entry.path().filename().string();
    return std::string();
  };
  const auto first = name_of_group();
  const auto second = name_of_group();
  EXPECT_NE(first, "") << "no group, or one that a process id names";
  EXPECT_NE(first, second);
  EXPECT_EQ(::rmdir(parent.c_str()), 0);
}

TEST(StopTest, KilledForWantOfMemoryIsToldFromAnyOtherKill) {
  const auto place = find_cgroups();
  const std::string group = place.memory_v1 + "/drun-test-" + std::to_string(::getpid());
  if (place.memory_v1.empty() || ::mkdir(group.c_str(), 0755) != 0)
    GTEST_SKIP() << "may not make a cgroup with a limit of memory";
  const int result = in_child([&] {
    if (!write_small_file(group + "/memory.limit_in_bytes", "67108864")) return 1;
    if (!write_small_file(group + "/cgroup.procs", std::to_string(::getpid()))) return 2;
    Driver driver;
    driver.guardian.spawn(Driver::request(1, {"tail", "/dev/zero"}));  // reads without an end
    const auto greedy = driver.await<Exited>(1);
    if (!greedy || greedy->status.signal != SIGKILL || !greedy->out_of_memory) return 3;
    driver.guardian.spawn(Driver::request(2, {"sleep", "1000"}));
    const auto spawned = driver.await<Spawned>(2);
    if (!spawned) return 4;
    ::kill(spawned->pid, SIGKILL);
    const auto shot = driver.await<Exited>(2);
    return shot && shot->status.signal == SIGKILL && !shot->out_of_memory ? 0 : 5;
  });
  EXPECT_EQ(result, 0);
  EXPECT_TRUE(eventually([&] { return ::rmdir(group.c_str()) == 0; }));
}

}  // namespace
}  // namespace drun::process::test
