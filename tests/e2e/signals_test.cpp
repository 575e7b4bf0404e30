// Signals to drun: who stops, who is told, how much time the workers get.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/debugger.hpp"
#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/gate.hpp"
#include "support/process_state.hpp"

namespace drun::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

Arguments two_nodes(const ReservedPort& port) {
  return {"--nnodes",      "2",           "--rdzv-endpoint",
          port.endpoint(), "--rdzv-conf", "keep_alive_interval=20"};
}

// Writes the name of each signal that it gets as a line of `file`, and goes on. `file`.ready is
// there when it is ready for them.
Arguments noting(const std::filesystem::path& file, const std::string& then = "") {
  std::string script = "for s in TERM INT USR1 USR2 HUP QUIT; do trap \"echo $s >> " +
                       file.string() + "; echo got $s" + (then.empty() ? "" : "; " + then) +
                       "\" $s; done; : > " + file.string() + ".ready; echo ready; " +
                       "while :; do sleep 0.02; done";
  return {"sh", "-c", script};
}

// Unless somebody names it, SIGQUIT shows the workers' stacks.
const Arguments kQuitStops{"--signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"};

TEST(StopSignalTest, EachHandledSignalStopsTheJobAndGivesItsCode) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    DrunProcess process(kQuitStops + Arguments{"sh", "-c", "echo ready; exec sleep 1000"});
    ASSERT_TRUE(process.wait_for_out("ready"));
    process.signal(number);
    expect_end(process, 128 + number);
    // As its user wished: no error.
    const std::string name = ::sigabbrev_np(number);
    EXPECT_THAT(process.err(), EndsWith("drun: stopped: received SIG" + name + "\n"));
    EXPECT_THAT(process.err(), Not(HasSubstr("error")));
  }
}

TEST(StopSignalTest, SignalsToHandleChoosesThem) {
  DrunProcess process(Arguments{"--signals-to-handle", "SIGUSR1,SIGTERM", "sh", "-c",
                                "echo ready; exec sleep 1000"});
  ASSERT_TRUE(process.wait_for_out("ready"));
  process.signal(SIGUSR1);
  expect_end(process, 128 + SIGUSR1);
}

TEST(StopSignalTest, WorkersGetTheStopSignalOnceWhateverTheCause) {
  const ReservedPort port;
  const TempDir directory;
  struct Cause {
    std::string name;
    Arguments flags;
    int signal;  // to drun; 0: none
    int code;
  };
  for (const auto& [name, flags, number, code] : std::vector<Cause>{
           {"signal", {}, SIGTERM, 143},
           {"other-signal", {"--stop-signal", "INT"}, SIGTERM, 143},
           {"timeout", {"--timeout", "12"}, 0, 124},
           {"local-nodes", {"--local-nodes", "2"}, SIGTERM, 143},
       }) {
    SCOPED_TRACE(name);
    const auto file = directory.path() / name;
    DrunProcess process(flags + Arguments{"--shutdown-timeout", "600"} +
                        noting(file, "sleep 0.3; exit 0"));
    const std::string all = name == "local-nodes" ? "ready\nready" : "ready";
    ASSERT_TRUE(process.wait_for_out(all)) << process.err();
    if (number != 0) process.signal(number);
    expect_end(process, code);
    const std::string expected = name == "other-signal" ? "INT\n" : "TERM\n";
    EXPECT_EQ(read_file(file), name == "local-nodes" ? expected + expected : expected);
  }
}

TEST(StopSignalTest, WhatToldDrunToStopIsPassedOn) {
  const TempDir directory;
  for (const auto& [number, name] : std::vector<std::pair<int, std::string>>{
           {SIGINT, "INT"}, {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}}) {
    const auto file = directory.path() / name;
    DrunProcess process(kQuitStops + noting(file, "exit 0"));
    ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
    process.signal(number);
    expect_end(process, 128 + number);
    EXPECT_EQ(read_file(file), name + "\n");
  }
}

TEST(ForwardSignalTest, IsSaidOnceHoweverOftenItComes) {
  const TempDir directory;
  for (const char* nodes : {"1", "2"}) {
    const auto file = directory.path() / nodes;
    DrunProcess process(Arguments{"--local-nodes", nodes} + noting(file));
    const std::size_t workers = std::string(nodes) == "2" ? 2 : 1;
    ASSERT_TRUE(process.wait_for_out(workers == 2 ? "ready\nready" : "ready")) << process.err();
    for (const std::size_t sent : {1U, 2U}) {
      process.signal(SIGUSR1);
      ASSERT_TRUE(eventually([&] { return split_lines(read_file(file)).size() >= sent * workers; }))
          << process.err();
    }
    process.signal(SIGKILL);
    const Finished finished = process.finish();
    const std::string line = "drun: received SIGUSR1: passed on to the workers";
    EXPECT_NE(finished.err.find(line), std::string::npos) << finished.err;
    EXPECT_EQ(finished.err.find(line), finished.err.rfind(line)) << finished.err;
  }
}

TEST(ForwardSignalTest, IsNotLostSilentlyWhileNoWorkerRuns) {
  const ReservedPort port;
  DrunProcess process(two_nodes(port) + Arguments{"sleep", "1000"});
  ASSERT_TRUE(process.wait_for_err("1 of 2 nodes")) << process.err();
  process.signal(SIGUSR2);
  EXPECT_TRUE(process.wait_for_err("received SIGUSR2, but no worker runs here now: nobody gets it"))
      << process.err();
  process.signal(SIGTERM);
  expect_end(process, 143);
}

// Nobody named them: they used to end drun at once, and the workers with it, without a word.
TEST(StopSignalTest, WhateverElseWouldEndDrunStopsTheJobAndIsSaid) {
  const TempDir directory;
  const auto run = [&](const Arguments& flags, int number) {
    const std::string report = (directory.path() / std::to_string(number)).string();
    DrunProcess process(Arguments{"--report", report} + flags +
                        Arguments{"sh", "-c", "echo ready; exec sleep 1000"});
    ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
    process.signal(number);
    expect_end(process, 128 + number);
    EXPECT_THAT(process.err(), HasSubstr("drun: stopped: received SIG"));
    EXPECT_THAT(read_file(report), HasSubstr("\"result\": \"stopped\""));
  };
  for (const int number : {SIGALRM, SIGXCPU, SIGPROF, SIGRTMIN + 3}) {
    SCOPED_TRACE(number);
    run({}, number);
    run({"--local-nodes", "1"}, number);
  }
  run({"--forward-signals="}, SIGUSR1);
  run({"--signals-to-handle", "SIGTERM"}, SIGINT);
}

// Told to one node, it is the same for the workers of all: each gets its chance to save as it
// knows.
TEST(StopSignalTest, WhatToldOneNodeToStopIsPassedOnByAll) {
  const TempDir directory;
  for (const auto& [number, name] :
       std::vector<std::pair<int, std::string>>{{SIGINT, "INT"}, {SIGTERM, "TERM"}}) {
    const ReservedPort port;
    const auto one = directory.path() / ("one-" + name);
    const auto other = directory.path() / ("other-" + name);
    DrunProcess first(two_nodes(port) + noting(one, "exit 0"));
    DrunProcess second(two_nodes(port) + noting(other, "exit 0"));
    ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
    ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
    second.signal(number);
    expect_end(first, 128 + number);
    expect_end(second, 128 + number);
    EXPECT_EQ(read_file(one), name + "\n");
    EXPECT_EQ(read_file(other), name + "\n");
  }
}

// A shell's background job ignores SIGINT: it must not use up the grace of a worker that has ended.
TEST(StopSignalTest, WhatIgnoresCtrlCEndsWithItsWorker) {
  DrunProcess process(
      {"--shutdown-timeout", "600", "sh", "-c", "sleep 1000 & echo ready; wait; wait"});
  ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
  const auto before = Clock::now();
  process.signal(SIGINT);
  expect_end(process, 130);
  EXPECT_LT(Clock::now() - before, kPatience);
}

TEST(StopSignalTest, WorkersGetTheStopSignalOnceAfterAFailure) {
  const TempDir directory;
  const auto file = directory.path() / "signals";
  const auto command = noting(file, "sleep 0.4; exit 0");
  DrunProcess process(Arguments{"--nproc-per-node", "2", "sh", "-c",
                                "[ $RANK = 1 ] || { " + command.back() + "; }; while [ ! -e " +
                                    file.string() + ".ready ]; do sleep 0.02; done; exit 9"});
  expect_end(process, 9);
  EXPECT_EQ(read_file(file), "TERM\n");
}

TEST(StopSignalTest, TheGraceIsTheSameWhateverTheCause) {
  constexpr milliseconds kGrace{6'000};  // without --shutdown-timeout it is 30 s
  constexpr milliseconds kTimeLimit{12'000};
  struct Cause {
    std::string name;
    Arguments flags;
    std::string rank1;  // what another worker does when it is let go
    int code;
  };
  for (const auto& [name, flags, rank1, code] : std::vector<Cause>{
           {"signal", {}, "exit 0", 143},
           {"timeout", {"--timeout", "12"}, "exit 0", 124},
           {"failure", {}, "exit 9", 9},
           {"crash", {}, "ulimit -c 0; kill -SEGV $$", 139},
       }) {
    SCOPED_TRACE(name);
    const TempDir directory;
    const Gate gate(directory.path() / "gate");
    Launch launch;
    launch.directory = directory.path();
    const auto begin = Clock::now();
    DrunProcess process(Arguments{"--nproc-per-node", "2", "--shutdown-timeout", "6"} + flags +
                            Arguments{"sh", "-c",
                                      "[ $RANK = 1 ] && { read line <gate; " + rank1 +
                                          "; exit; }; trap 'echo told' TERM; echo ready; "
                                          "while :; do sleep 0.02; done"},
                        launch);
    ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
    auto cause = Clock::now();
    if (name == "timeout") {
      cause = begin + kTimeLimit;
    } else if (name == "signal") {
      process.signal(SIGTERM);
    } else {
      ASSERT_TRUE(gate.open());
    }
    ASSERT_TRUE(process.wait_for_out("told")) << process.err();
    expect_end(process, code);
    EXPECT_GE(Clock::now() - cause, kGrace - milliseconds(50));
    EXPECT_LT(Clock::now() - cause, milliseconds(25'000));
  }
}

TEST(StopSignalTest, TheSecondSignalKillsAndNoNumberLeavesAWorkerBehind) {
  for (const int signals : {2, 3, 20}) {
    for (const char* nodes : {"1", "2"}) {
      DrunProcess process(Arguments{"--local-nodes", nodes, "--shutdown-timeout", "600", "sh", "-c",
                                    "trap '' TERM INT; (trap '' TERM; sleep 1000) & echo ready; "
                                    "while :; do sleep 1; done"});
      ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
      process.signal(SIGINT);
      ASSERT_TRUE(process.wait_for_err("SIGKILL in") || signals > 2) << process.err();
      for (int i = 1; i < signals; ++i)
        process.signal(SIGINT);
      expect_end(process, 130);
    }
  }
}

// timeout(1) sends SIGTERM to drun and at once to its group. The same here, however slow this test
// is: one for the process and one for its thread wait both for drun, which sleeps.
void signal_twice_at_once(const DrunProcess& process, int number) {
  process.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(process.pid()) == 'T'; }));
  process.signal(number);
  ASSERT_EQ(::syscall(SYS_tgkill, process.pid(), process.pid(), number), 0);
  process.signal(SIGCONT);
}

TEST(StopSignalTest, OneRequestThatComesAsTwoSignalsLeavesTheGraceAndALaterOneKills) {
  const TempDir directory;
  for (const char* nodes : {"1", "2"}) {
    for (const bool later : {false, true}) {
      SCOPED_TRACE(std::string(nodes) + (later ? " nodes, later one" : " nodes"));
      const auto go_on = directory.path() / ("go-on" + std::string(nodes) + (later ? "l" : ""));
      const auto saved = directory.path() / ("saved" + std::string(nodes) + (later ? "l" : ""));
      DrunProcess process(
          Arguments{"--local-nodes", nodes, "--shutdown-timeout", "600", "sh", "-c",
                    "trap 'echo told; while [ ! -e " + go_on.string() +
                        " ]; do sleep 0.02; done; echo $RANK >> " + saved.string() +
                        "; exit 0' TERM; echo ready; while :; do sleep 0.02; done"});
      const bool two = std::string(nodes) == "2";
      ASSERT_TRUE(process.wait_for_out(two ? "ready\nready" : "ready")) << process.err();
      signal_twice_at_once(process, SIGTERM);
      ASSERT_TRUE(process.wait_for_out(two ? "told\ntold" : "told")) << process.err();
      // Said after a second.
      ASSERT_TRUE(process.wait_for_err("SIGKILL in")) << process.err();
      later ? process.signal(SIGTERM) : void(directory.write(go_on.filename(), ""));
      expect_end(process, 143);
      EXPECT_EQ(split_lines(read_file(saved)).size(), later ? 0U : two ? 2U : 1U);
      EXPECT_EQ(process.err().find("again: killing the workers") != std::string::npos, later)
          << process.err();
    }
  }
}

// Both stops end in the same instant when the guardian has had to wait.
TEST(StopSignalTest, HowItEndedIsSaidOnceHoweverManyStopsThereWere) {
  const ReservedPort port;
  DrunProcess process(two_nodes(port) + Arguments{"sleep", "1000"});
  ASSERT_TRUE(process.wait_for_err("\n")) << process.err();  // says that it waits
  pid_t guardian = -1;
  ASSERT_TRUE(eventually([&] { return (guardian = helper_of(process, "drun-guardian")) > 0; }));
  Debugger debugger(guardian);
  if (!debugger.holds()) GTEST_SKIP() << "ptrace is not allowed here";
  debugger.stop();
  signal_and_wait(process, SIGTERM);
  process.signal(SIGINT);
  ASSERT_TRUE(process.wait_for_err("again: killing the workers")) << process.err();
  process.signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(process.pid()) == 'T'; }));
  debugger.let_go();
  // It has done what it was asked, and sleeps.
  ASSERT_TRUE(eventually([&] { return state_of(guardian) == 'S'; }));
  process.signal(SIGCONT);
  expect_end(process, 128 + SIGTERM);
  const auto lines = split_lines(process.err());
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.find("received SIGTERM") != std::string::npos;
                          }),
            1)
      << process.err();
}

// The last thing that drun waits for is its watchdog's end.
TEST(StopSignalTest, ASignalWhileDrunEndsDoesNotTakeItsExitCode) {
  const TempDir directory;
  const auto file = directory.path() / "go-on";
  DrunProcess process(
      {"sh", "-c", "echo ready; while [ ! -e " + file.string() + " ]; do sleep 0.02; done"});
  ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
  pid_t watchdog = -1;
  ASSERT_TRUE(eventually([&] { return (watchdog = helper_of(process, "job-keeper")) > 0; }));
  ::kill(watchdog, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return state_of(watchdog) == 'T'; }));
  ASSERT_TRUE(in_set(process.pid(), "SigCgt", SIGTERM));
  directory.write("go-on", "");
  ASSERT_TRUE(eventually([&] { return !in_set(process.pid(), "SigCgt", SIGTERM); }));
  process.signal(SIGTERM);
  ::kill(watchdog, SIGCONT);
  expect_end(process, 0);
}

TEST(StopSignalTest, WhatCannotBeKilledIsSaidOnce) {
  DrunProcess process({"--shutdown-timeout", "0", "sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
  const pid_t worker = process.wait_for_pid_with("RANK=0");
  ASSERT_GT(worker, 0);
  Debugger debugger(worker);
  if (!debugger.holds()) GTEST_SKIP() << "ptrace is not allowed here";
  process.signal(SIGTERM);
  const std::string said =
      "warning: the workers leave process " + std::to_string(worker) + " behind: ";
  ASSERT_TRUE(process.wait_for_err(said)) << process.err();
  debugger.release();
  expect_end(process, 128 + SIGTERM);
  EXPECT_EQ(process.err().find(said), process.err().rfind(said)) << process.err();
}

TEST(StopSignalTest, WorksBeforeTheWorkersStart) {
  const ReservedPort port;
  const std::vector<Arguments> waits = {
      two_nodes(port),
      {"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--rdzv-conf", "is_host=0"},
      {"--nnodes", "2", "--rdzv-endpoint", "no-such-host.invalid:29500"},
      {"--nnodes", "2", "--node-rank", "1", "--master-addr", "127.0.0.1", "--master-port",
       std::to_string(port.number())},
  };
  for (const auto& wait : waits) {
    DrunProcess process(wait + Arguments{"sleep", "1000"});
    ASSERT_TRUE(process.wait_for_err("\n")) << process.err();  // says that it waits
    process.signal(SIGTERM);
    const auto before = Clock::now();
    expect_end(process, 143);
    EXPECT_LT(Clock::now() - before, milliseconds(45'000)) << wait.back();
  }
}

TEST(StopSignalTest, WorksWhileANodeWaitsForTheOthersToFinish) {
  const ReservedPort port;
  const TempDir directory;
  const auto wait = directory.path() / "never";
  const Arguments arguments =
      two_nodes(port) + Arguments{"--rdzv-conf", "close_timeout=600,keep_alive_interval=20", "sh",
                                  "-c",
                                  "echo rank $RANK; [ $RANK = 0 ] && exit 0; exec sleep 1000"};
  DrunProcess first(arguments);
  DrunProcess second(arguments);
  ASSERT_TRUE(first.wait_for_out("rank")) << first.err();
  ASSERT_TRUE(second.wait_for_out("rank")) << second.err();
  DrunProcess& done = first.out() == "rank 0\n" ? first : second;
  ASSERT_TRUE(eventually([&] { return done.pids_with("RANK=0").empty(); }));
  done.signal(SIGTERM);
  expect_end(first, 143);
  expect_end(second, 143);
}

TEST(StopSignalTest, OnePreemptedNodeGivesAllRanksTheSameGraceToSave) {
  const ReservedPort port;
  const Arguments arguments =
      two_nodes(port) + Arguments{"--nproc-per-node",
                                  "2",
                                  "--shutdown-timeout",
                                  "600",
                                  "sh",
                                  "-c",
                                  "trap 'sleep 1; echo saved $RANK; exit 0' TERM; echo ready; "
                                  "while :; do sleep 0.02; done"};
  DrunProcess first(arguments);
  DrunProcess second(arguments);
  ASSERT_TRUE(first.wait_for_out("ready\nready")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready\nready")) << second.err();
  first.signal(SIGTERM);
  expect_end(first, 143);
  expect_end(second, 143);
  const auto lines = split_lines(first.out() + second.out());
  for (const std::string rank : {"0", "1", "2", "3"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "saved " + rank), 1) << rank;
}

TEST(GuardianTest, ItsEndIsSaidOnce) {
  DrunProcess process({"sh", "-c", "echo ready; exec sleep 1000"});
  ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
  const pid_t guardian = helper_of(process, "drun-guardian");
  ASSERT_GT(guardian, 0);
  ::kill(guardian, SIGKILL);
  expect_end(process, 125);
  EXPECT_EQ(process.err(), "drun: error: drun's guardian process ended (killed by SIGKILL)\n");
}

// One node knows that the job ends in less than the time asked for; its workers and those of the
// other, which knows of a later end only, are told at once, as soon as that does not kill them.
TEST(WarningTest, WorkersOfAllNodesAreToldThatTheJobEnds) {
  const ReservedPort port;
  const auto end = std::to_string(std::time(nullptr) + 100);
  const Arguments arguments =
      two_nodes(port) + Arguments{"--timeout",
                                  "1h",
                                  "--warn-before",
                                  "USR1@10m",
                                  "sh",
                                  "-c",
                                  "sleep 0.2; trap 'echo told of $DRUN_JOB_END_TIME; exit 0' USR1; "
                                  "while :; do sleep 0.02; done"};
  DrunProcess later(arguments);
  Launch knowing;
  knowing.environment = {"DRUN_JOB_END_TIME=" + end};
  DrunProcess sooner(arguments, knowing);
  expect_end(later, 0);
  expect_end(sooner, 0);
  EXPECT_EQ(later.out(), "told of " + end + "\n");
  EXPECT_EQ(sooner.out(), "told of " + end + "\n");
  const std::string said = later.err() + sooner.err();
  const auto at = said.find(" s: SIGUSR1 to all workers\n");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("SIGUSR1", at + 10), std::string::npos) << said;
}

TEST(ForwardSignalTest, ReachesTheWorkersAndTheJobGoesOn) {
  const TempDir directory;
  for (const char* nodes : {"", "2"}) {
    const auto file = directory.path() / (std::string("signals") + nodes);
    Arguments arguments;  // these two are passed on unless a flag says otherwise
    if (*nodes != '\0') arguments = {"--local-nodes", nodes};
    DrunProcess process(arguments + Arguments{"sh", "-c",
                                              "trap 'echo got one' USR1; trap 'echo got two; "
                                              "exit 0' USR2; echo ready; "
                                              "while :; do sleep 0.02; done"});
    const std::string twice = *nodes == '\0' ? "" : "\nready";
    ASSERT_TRUE(process.wait_for_out("ready" + twice)) << process.err();
    process.signal(SIGUSR1);
    const std::string once = *nodes == '\0' ? "got one" : "got one\ngot one";
    ASSERT_TRUE(process.wait_for_out(once)) << process.err();
    process.signal(SIGUSR2);
    expect_end(process, 0);
  }
}

}  // namespace
}  // namespace drun::test
