// drun -H: this program as the starter, as the ends on hosts that are all this machine, and as the
// agents there, which are shells.
#include "launcher/starter/starter.hpp"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/version.hpp"
#include "integration/launcher/starter/starter_rig.hpp"
#include "launcher/process/exit_status.hpp"
#include "support/drun_process.hpp"

namespace drun::launcher {
namespace {

using drun::test::DrunProcess;
using drun::test::Finished;
using drun::test::Launch;
using drun::test::split_lines;
using drun::test::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kEnv = "env AT={host}";
// An agent that runs until it is told to end.
constexpr const char* kRuns = "trap 'exit 143' TERM; echo runs; while :; do sleep 0.02; done";

struct Job {
  std::string hosts;
  std::string script;
  int min = 0;  // all
  int fan_out = 32;
  std::string launcher = kEnv;
  std::string directory = "/";
};

Launch launch(const Job& job) {
  const auto hosts = std::count(job.hosts.begin(), job.hosts.end(), ',') + 1;
  Launch launch;
  launch.argv = {test::this_program(),
                 std::string(test::kStart),
                 std::to_string(job.min > 0 ? job.min : hosts),
                 std::to_string(job.fan_out),
                 job.directory,
                 job.hosts,
                 job.launcher,
                 job.script};
  launch.environment = {"SSH_CONNECTION"};
  return launch;
}

Finished run(const Job& job) {
  return DrunProcess(launch(job)).finish();
}

std::vector<std::string> sorted_lines(const std::string& text) {
  auto lines = split_lines(text);
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(StarterTest, RunsAnAgentOnEachHostAndShowsWhatTheyPrint) {
  const TempDir folder;
  Job job{"a,b,c", "echo $AT $NODE $HANDED; pwd >&2"};
  job.directory = folder.path();
  const auto finished = run(job);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("a 0 over", "b 1 over", "c 2 over"));
  EXPECT_EQ(count(finished.err, folder.path().string() + "\n"), 3U);
  EXPECT_THAT(finished.err, HasSubstr("started on 3 hosts: "));
  EXPECT_THAT(finished.err, HasSubstr(", meeting at a:"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// Where the first host was reached, and nowhere else.
TEST(StarterTest, TellsAllNodesToMeetAtTheFirst) {
  Launch started = launch({"a,b", "echo $NODE $FLAGS"});
  started.environment.emplace_back("SSH_CONNECTION=198.51.100.1 4000 10.9.8.7 22");
  const auto finished = DrunProcess(started).finish();
  const auto lines = sorted_lines(finished.out);
  ASSERT_EQ(lines.size(), 2U) << finished.err;
  const auto place = lines[0].substr(lines[0].find("--rdzv-endpoint="));
  const auto endpoint = place.substr(0, place.find(' '));
  EXPECT_THAT(endpoint, StartsWith("--rdzv-endpoint=10.9.8.7:"));
  EXPECT_THAT(endpoint, Not(EndsWith(":0")));
  EXPECT_THAT(lines[0], AllOf(StartsWith("0 agent "), HasSubstr("is_host=true")));
  EXPECT_THAT(lines[1],
              AllOf(StartsWith("1 agent "), HasSubstr(endpoint), HasSubstr("is_host=false")));
}

TEST(StarterTest, EndsAsTheJobDoes) {
  for (const int code : {7, 255}) {
    const auto finished = run({"a,b", "exit " + std::to_string(code)});
    EXPECT_EQ(finished.code, code);
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

// One that has never met the others hears nothing of the job's end.
TEST(StarterTest, ALeftOverAgentIsStoppedSomeTimeAfterTheJobFailed) {
  const auto begun = std::chrono::steady_clock::now();
  const auto finished = run({"a,b", std::string("[ $NODE = 0 ] || exit 7; ") + kRuns});
  EXPECT_EQ(finished.code, 7);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(StarterTest, MuchOutputComesWholeFromAllStreams) {
  const auto finished =
      run({"a,b",
           "i=0; while [ $i -lt 10 ]; do head -c 99999 /dev/zero | tr '\\0' x; echo; "
           "head -c 99999 /dev/zero | tr '\\0' y >&2; echo >&2; i=$((i+1)); done"});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out.size(), 2'000'000U);
  EXPECT_EQ(finished.out.find_first_not_of("x\n"), std::string::npos);
  EXPECT_EQ(count(finished.err, "y\n"), 20U);
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), 'y'), 2 * 999'990);
}

// ---- hosts that are not there ----

TEST(StarterTest, WithoutAHostNothingIsStarted) {
  const TempDir folder;
  Job job{"a,b,c", "echo runs"};
  job.launcher = folder.write("reach",
                              "#!/bin/sh\n[ $1 != b ] || { echo 'no way' >&2; exit 3; }\n"
                              "shift; exec \"$@\"\n",
                              true) +
                 " {host}";
  const auto finished = run(job);
  EXPECT_EQ(finished.code, 125);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("drun: error: b: "),
                    HasSubstr("/reach ended with exit code 3 before drun answered (no way)\n")));
  EXPECT_THAT(finished.err, HasSubstr("nothing was started: the job needs 3 hosts"));
  EXPECT_EQ(split_lines(finished.err).size(), 2U) << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// The report of an earlier job would be taken for this one's.
TEST(StarterTest, WithoutAHostTheReportSaysSo) {
  const TempDir folder;
  const std::string report = folder.write("report.json", R"({"result": "success"})");
  Launch started = launch({.hosts = "a,b", .script = "echo runs", .launcher = "/bin/false {host}"});
  started.environment.push_back("REPORT=" + report);
  EXPECT_EQ(DrunProcess(started).finish().code, 125);
  EXPECT_THAT(drun::test::read_file(report),
              AllOf(HasSubstr(R"("exit_code": 125)"),
                    HasSubstr("nothing was started: the job needs 2 hosts")));
}

TEST(StarterTest, ALauncherThatIsNotThereIsNamed) {
  Job job{"a", "echo runs"};
  job.launcher = "no-such-launcher {host}";
  const auto finished = run(job);
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("a: run no-such-launcher: No such file or directory"));
  EXPECT_THAT(finished.err, HasSubstr("nothing was started: the job needs a host"));
}

// Its frames are those of another program, or of another version.
TEST(StarterTest, WhatAnswersMustBeTheSameDrun) {
  const TempDir folder;
  using hosts::encode;
  const std::string other =
      std::string(hosts::kEdgeMark) +
      encode({hosts::FrameType::Hello, 0, pack(hosts::Hello{"0.0.1", "", "1", "h"})});
  const std::string none =
      std::string(hosts::kEdgeMark) + encode({hosts::FrameType::Hello, 0, "nonsense"});
  const std::string no_hello =
      std::string(hosts::kEdgeMark) +
      encode({hosts::FrameType::Output, 0, pack(hosts::Hello{DRUN_VERSION_STRING, "", "1", "h"})});
  const std::string answer =
      folder.write("answer", "#!/bin/sh\ncat \"$0.bytes\"\nexec sleep 100\n", true);
  Job job{"a", "echo runs"};
  job.launcher = answer + " {host}";
  folder.write("answer.bytes", other);
  const auto old = run(job);
  EXPECT_EQ(old.code, 125);
  EXPECT_THAT(old.err, HasSubstr("a: the drun there is another version, 0.0.1, and this is "));
  EXPECT_THAT(old.survivors, IsEmpty());
  for (const auto& bytes : {none, no_hello}) {
    folder.write("answer.bytes", bytes);
    const auto finished = run(job);
    EXPECT_EQ(finished.code, 125);
    EXPECT_THAT(finished.err, HasSubstr("a: what answers there is no drun"));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(StarterTest, AFolderThatAHostLacksIsNamed) {
  Job job{"a,b", "echo runs"};
  job.directory = "/no/such/folder";
  const auto finished = run(job);
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("a: its folder cannot be entered there: /no/such/folder: "));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// It runs without the host, and tries it again after a while: each time twice as long.
TEST(StarterTest, AnElasticJobTriesAHostAgain) {
  const TempDir folder;
  Job job{"a,b", "echo runs $AT; until [ -e end ]; do sleep 0.02; done; exit 0", 1};
  job.directory = folder.path();
  job.launcher =
      folder.write(
          "reach",
          "#!/bin/sh\ncd " + folder.path().string() +
              "\nif [ $1 = b ]; then date +%s%N >> tries; [ $(wc -l < tries) = 3 ] || exit 3; fi\n"
              "shift; exec \"$@\"\n",
          true) +
      " {host}";
  job.launcher = "env AT={host} " + job.launcher;
  DrunProcess starter(launch(job));
  ASSERT_TRUE(starter.wait_for_out("runs b")) << starter.err();
  EXPECT_THAT(starter.out(), HasSubstr("runs a"));
  folder.write("end", "");
  const auto finished = starter.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("started on 1 host: a"));
  EXPECT_THAT(finished.err, HasSubstr("b: started again"));
  EXPECT_EQ(count(finished.err, "before drun answered"), 1U) << "told once";
  EXPECT_THAT(finished.survivors, IsEmpty());
  const auto tries = split_lines(drun::test::read_file(folder.path() / "tries"));
  ASSERT_EQ(tries.size(), 3U);
  const auto between = [&](std::size_t i) {
    return std::stoll(tries[i + 1]) - std::stoll(tries[i]);
  };
  EXPECT_GE(between(0), 2'000'000'000);
  EXPECT_GE(between(1), 4'000'000'000);
}

// ---- hosts that are lost ----

TEST(StarterTest, TheJobEndsWithAHostThatItNeeds) {
  for (const bool agent : {true, false}) {
    DrunProcess starter(launch({"a,b,c", kRuns}));
    ASSERT_TRUE(test::eventually([&] {
      (void)starter.wait_for_out("runs\nruns\nruns\n", std::chrono::milliseconds(20));
      return count(starter.out(), "runs\n") == 3;
    }));
    const auto of_b = starter.pids_with("AT=b");
    std::vector<pid_t> chosen;
    for (const pid_t pid : of_b) {
      const auto command = drun::test::read_file("/proc/" + std::to_string(pid) + "/cmdline");
      const bool is_end = command.find(hosts::kRemoteEndFlag) != std::string::npos;
      if (is_end != agent && (is_end || command.starts_with("sh"))) chosen.push_back(pid);
    }
    ASSERT_FALSE(chosen.empty());
    ::kill(*std::min_element(chosen.begin(), chosen.end()), SIGKILL);
    ASSERT_TRUE(starter.wait());
    EXPECT_EQ(starter.code(), 125) << starter.err();
    EXPECT_THAT(starter.err(), HasSubstr(agent ? "b: its agent was killed by SIGKILL"
                                               : "b: lost: env ended with exit code 137"));
    EXPECT_THAT(starter.err(), HasSubstr("stopping the job: too few hosts are left"));
    // An agent hears of its end's death from the kernel, and nobody waits for that.
    EXPECT_TRUE(starter.survivors_gone(drun::test::kPatience));
  }
}

TEST(StarterTest, NothingOutlivesAStarterThatIsKilled) {
  DrunProcess starter(launch({"a,b,c", kRuns, 0, 1}));
  ASSERT_TRUE(test::eventually([&] {
    (void)starter.wait_for_out("runs\nruns\nruns\n", std::chrono::milliseconds(20));
    return count(starter.out(), "runs\n") == 3;
  }));
  starter.signal(SIGKILL);
  ASSERT_TRUE(starter.wait());
  EXPECT_TRUE(starter.survivors_gone(drun::test::kPatience));
}

// ---- trees ----

TEST(StarterTest, HostsStartFurtherHosts) {
  const auto finished = run({"a,b,c,d,e", "echo $NODE; exit 4", 0, 2});
  EXPECT_EQ(finished.code, 4);
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(StarterTest, WhatAMissingHostWouldHaveStartedIsStartedFromAbove) {
  const TempDir folder;
  Job job{"a,b,c,d", "echo $NODE", 3, 1};
  job.launcher =
      folder.write("reach", "#!/bin/sh\n[ $1 != b ] || exit 3\nshift; exec \"$@\"\n", true) +
      " {host}";
  const auto finished = run(job);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(sorted_lines(finished.out), ElementsAre("0", "2", "3"));
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("drun: error: b: "),
                    HasSubstr("/reach ended with exit code 3 before drun answered (from ")));
  job.launcher = "no-such-launcher {host}";
  job.min = 4;
  const auto none = run(job);
  EXPECT_EQ(none.code, 125);
  EXPECT_THAT(none.err, HasSubstr("drun: error: a, b, c, d: run no-such-launcher: "));
}

TEST(StarterTest, WhatHangsOnALostHostIsLostWithIt) {
  DrunProcess starter(launch({"a,b,c", kRuns, 0, 1}));
  ASSERT_TRUE(test::eventually([&] {
    (void)starter.wait_for_out("runs\nruns\nruns\n", std::chrono::milliseconds(20));
    return count(starter.out(), "runs\n") == 3;
  }));
  for (const pid_t pid : starter.pids_with("AT=b")) {
    const auto command = drun::test::read_file("/proc/" + std::to_string(pid) + "/cmdline");
    if (command.find(hosts::kRemoteEndFlag) != std::string::npos) ::kill(pid, SIGKILL);
  }
  ASSERT_TRUE(starter.wait());
  EXPECT_EQ(starter.code(), 125) << starter.err();
  EXPECT_THAT(starter.err(), HasSubstr("b: lost: env ended with exit code 137"));
  EXPECT_THAT(starter.err(), HasSubstr("c: lost with b, which had started it"));
  // An agent hears of its end's death from the kernel, and nobody waits for that.
  EXPECT_TRUE(starter.survivors_gone(drun::test::kPatience));
}

// ---- signals ----

TEST(StarterTest, ARequestToStopReachesAllAgents) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    const std::string name = process::signal_name(signal).substr(3);
    DrunProcess starter(launch({"a,b", "trap 'echo " + name + "; exit 9' " + name +
                                           "; echo runs; "
                                           "while :; do sleep 0.02; done"}));
    ASSERT_TRUE(starter.wait_for_out("runs\nruns\n"));
    starter.signal(signal);
    const auto finished = starter.finish();
    EXPECT_EQ(finished.code, 9);
    EXPECT_EQ(count(finished.out, name + "\n"), 2U);
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(StarterTest, AnAgentThatIsKilledByTheStopLeavesItsCodeToTheSignal) {
  DrunProcess starter(launch({"a,b", "echo runs; exec sleep 100"}));
  ASSERT_TRUE(starter.wait_for_out("runs\nruns\n"));
  starter.signal(SIGTERM);
  const auto finished = starter.finish();
  EXPECT_EQ(finished.code, 143);
  EXPECT_THAT(finished.err, Not(HasSubstr("too few hosts")));
}

TEST(StarterTest, AStopBeforeAllHaveAnsweredStartsNothing) {
  const TempDir folder;
  Job job{"a,b", "echo runs"};
  job.launcher =
      folder.write("reach",
                   "#!/bin/sh\n[ $1 != b ] || { touch " + (folder.path() / "waits").string() +
                       "; exec sleep 100; }\nshift; exec \"$@\"\n",
                   true) +
      " {host}";
  DrunProcess starter(launch(job));
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(folder.path() / "waits"); }));
  starter.signal(SIGINT);
  const auto finished = starter.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, Not(HasSubstr("nothing was started")));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(StarterTest, SignalsToForwardStopNothing) {
  DrunProcess starter(launch({"a,b",
                              "trap 'echo usr1' USR1; trap 'exit 0' TERM; echo runs; "
                              "while :; do sleep 0.02; done"}));
  ASSERT_TRUE(starter.wait_for_out("runs\nruns\n"));
  starter.signal(SIGWINCH);
  starter.signal(SIGTSTP);
  ASSERT_TRUE(starter.wait_for_err("a job on other hosts cannot be suspended"));
  for (std::size_t i = 1; i <= 2; ++i) {
    starter.signal(SIGUSR1);
    ASSERT_TRUE(test::eventually([&] {
      (void)starter.wait_for_out("usr1\nusr1\nusr1\nusr1\n", std::chrono::milliseconds(20));
      return count(starter.out(), "usr1\n") == 2 * i;
    }));
  }
  starter.signal(SIGTERM);
  EXPECT_EQ(starter.finish().code, 0);
}

// The first three are the agents' to act on. By then nobody waits for them any more.
TEST(StarterTest, TheFourthRequestCutsTheHostsOff) {
  DrunProcess starter(launch({"a,b",
                              "n=0; trap 'n=$((n+1)); echo int $n' INT; echo runs; "
                              "while :; do sleep 0.02; done"}));
  ASSERT_TRUE(starter.wait_for_out("runs\nruns\n"));
  for (int i = 1; i <= 3; ++i) {
    starter.signal(SIGINT);
    const std::string answer = "int " + std::to_string(i) + "\n";
    ASSERT_TRUE(test::eventually([&] {
      (void)starter.wait_for_out(answer + answer, std::chrono::milliseconds(20));
      return count(starter.out(), answer) == 2;
    }));
  }
  ASSERT_TRUE(test::eventually([&] {
    starter.signal(SIGINT);
    return !starter.running() ||
           starter.wait_for_err("received SIGINT again: cutting the hosts off",
                                std::chrono::milliseconds(100));
  }));
  const auto finished = starter.finish();
  EXPECT_EQ(finished.code, 130) << finished.err;
}

// ---- readers ----

TEST(StarterTest, AReaderThatIsSlowGetsAllOfItThoughTheHostsAreGone) {
  const TempDir folder;
  Job job{"a,b", "head -c 300000 /dev/zero; touch done-$NODE"};
  job.directory = folder.path();
  Launch slow;
  Launch inner = launch(job);
  slow.environment = inner.environment;
  slow.argv = {"/bin/sh", "-c", "\"$@\" | { until [ -e read ]; do sleep 0.02; done; wc -c; }",
               "sh"};
  slow.argv.insert(slow.argv.end(), inner.argv.begin(), inner.argv.end());
  slow.directory = folder.path();
  DrunProcess reader(slow);
  ASSERT_TRUE(test::eventually([&] {
    return std::filesystem::exists(folder.path() / "done-0") &&
           std::filesystem::exists(folder.path() / "done-1");
  }));
  folder.write("read", "");
  const auto finished = reader.finish();
  EXPECT_EQ(std::stoi(finished.out), 600'000) << finished.err;
}

TEST(StarterTest, AReaderThatIsGoneEndsNothing) {
  const TempDir folder;
  Job job{"a,b", "echo line; until [ -e more ]; do sleep 0.02; done; echo more; exit 3"};
  job.directory = folder.path();
  Launch left;
  const Launch inner = launch(job);
  left.environment = inner.environment;
  left.argv = {"/bin/bash", "-c", "\"$@\" | { head -n 1; touch more; }; echo ${PIPESTATUS[0]}",
               "sh"};
  left.argv.insert(left.argv.end(), inner.argv.begin(), inner.argv.end());
  left.directory = folder.path();
  const auto finished = DrunProcess(left).finish();
  EXPECT_EQ(finished.out, "line\n3\n") << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
