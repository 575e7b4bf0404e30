// --hang-timeout, with real programs that hang, and with slow ones that must be left alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <list>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/places.hpp"
#include "support/scripted_peer.hpp"

namespace drun::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// A look at the stacks may take long on a machine that is busy.
Arguments watched(const std::string& time = "2") {
  return {"--hang-timeout", time, "--stacks-on-failure", "120"};
}

// The program of a kind; the slow ones run for so long.
Arguments worker(const std::string& kind, int seconds = 0) {
  return {places::program("stall_worker"), kind, std::to_string(seconds)};
}

Arguments shell(const std::string& script) {
  return {"--no-python", "sh", "-c", script, "sh", places::program("stall_worker")};
}

TEST(HangTimeoutTest, ProgramsThatHangAreFoundAndTheirPlaceIsNamed) {
  struct Case {
    const char* kind;
    const char* place;
  };
  const std::vector<Case> cases = {{"pause", "waits in "},    {"lock", "waits in futex"},
                                   {"pipe", "waits in read"}, {"recv", "waits in recvfrom"},
                                   {"watchdogs", "in futex"}, {"child", "waits in "},
                                   {"stopped", "waits in "},  {"without-main", "in recvfrom"}};
  std::list<DrunProcess> jobs;
  for (const Case& each : cases)
    jobs.emplace_back(watched() + Arguments{"--shutdown-timeout", "0"} + worker(each.kind));
  auto job = jobs.begin();
  for (const Case& each : cases) {
    SCOPED_TRACE(each.kind);
    expect_end(*job, 124);
    EXPECT_THAT(job->err(), HasSubstr("the job hangs: no rank of 1 has made progress for 2.0 s"));
    EXPECT_THAT(job->err(), HasSubstr(each.place));
    EXPECT_THAT(job->err(), ContainsRegex("stacks of rank 0(.|\n)*job failed: rank 0"));
    ++job;
  }
}

TEST(HangTimeoutTest, SlowProgramsAreLeftAlone) {
  constexpr int kSeconds = 7;
  const std::vector<std::string> kinds = {
      "computes", "child-computes", "computes-now-and-then", "writes",
      "sends",    "touches-memory", "starts-children",       "starts-threads"};
  std::list<DrunProcess> jobs;
  for (const auto& kind : kinds)
    jobs.emplace_back(watched() + worker(kind, kSeconds));
  auto job = jobs.begin();
  for (const auto& kind : kinds) {
    SCOPED_TRACE(kind);
    expect_end(*job, 0);
    EXPECT_THAT(job->err(), Not(HasSubstr("hangs")));
    ++job;
  }
}

TEST(HangTimeoutTest, CpuTimeAloneIsToldAndNotActedOn) {
  DrunProcess job(watched("1") + worker("computes", 5));
  expect_end(job, 0);
  EXPECT_THAT(job.err(), HasSubstr("that is not taken for a hang, because of rank 0: "));
}

// Who listens where NCCL's service would be, and says nothing, holds nothing up.
TEST(HangTimeoutTest, AServiceThatGivesNoAnswerHidesNothing) {
  const ScriptedPeer mute([](ScriptedConnection& connection) { connection.wait_for_close(); });
  DrunProcess job({Arguments{places::program("drun")} + watched("1") + worker("computes", 8),
                   {"NCCL_RAS_ADDR=" + to_string(mute.endpoint())},
                   {},
                   false});
  expect_end(job, 0);
  EXPECT_THAT(job.err(), HasSubstr("that is not taken for a hang, because"));
}

TEST(HangTimeoutTest, OneRankThatGetsOnIsEnough) {
  DrunProcess job(watched() + Arguments{"--nproc-per-node", "3"} +
                  shell("if [ $RANK = 1 ]; then exec \"$1\" writes 7; fi; exec \"$1\" sleeps 7"));
  expect_end(job, 0);
  EXPECT_THAT(job.err(), Not(HasSubstr("hangs")));
}

TEST(HangTimeoutTest, ARankThatHasEndedWellDoesNotHideAHang) {
  DrunProcess job(watched() + Arguments{"--nproc-per-node", "2"} +
                  shell("[ $RANK = 0 ] && exit 0; exec \"$1\" lock"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("job failed: rank 1"));
}

// It may go on only now, and it may take a while until it has seen that it can.
TEST(HangTimeoutTest, WhoHasWaitedForARankThatEndsHasTheWholeTimeFromThenOn) {
  std::list<DrunProcess> jobs;
  for (const char* several : {"--nproc-per-node", "--local-nodes"})
    jobs.emplace_back(
        watched("5") + Arguments{several, "2"} +
        shell("if [ $RANK = 0 ]; then exec \"$1\" writes 7; fi; exec \"$1\" sleeps 9"));
  for (auto& job : jobs) {
    expect_end(job, 0);
    EXPECT_THAT(job.err(), Not(HasSubstr("hangs")));
  }
}

// They wait for one another, on two nodes.
TEST(HangTimeoutTest, AHangOfTwoNodesIsFoundByBoth) {
  DrunProcess job(watched() + Arguments{"--local-nodes", "2", "--nproc-per-node", "2"} +
                  shell("if [ $RANK = 3 ]; then exec \"$1\" recv; fi; exec \"$1\" lock"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("the job hangs: no rank of 4 has made progress for 2.0 s"));
  EXPECT_THAT(job.err(), HasSubstr("ranks 0-1 wait in futex"));
  EXPECT_THAT(job.err(), HasSubstr("stacks of ranks 0-3"));
  EXPECT_THAT(job.err(), ContainsRegex("recvfrom .*rank 3"));
  // Its own node cannot know which of two is the odd one.
  EXPECT_THAT(job.err(), ContainsRegex("job failed: rank 3 .*recvfrom"));
}

// All others wait for it, on two nodes, and its first thread waits as theirs do.
TEST(HangTimeoutTest, ARankWhoseDataLoaderHangsIsTheRootCause) {
  for (const char* several : {"--nproc-per-node", "--local-nodes"}) {
    DrunProcess job(watched() + Arguments{several, "2"} +
                    shell("if [ $RANK = 1 ]; then exec \"$1\" loader; fi; exec \"$1\" recv"));
    expect_end(job, 124);
    EXPECT_THAT(job.err(), ContainsRegex("hangs: .*rank 1 waits in .* for its child process, which "
                                         "waits in p"));
    EXPECT_THAT(job.err(), ContainsRegex("job failed: rank 1 .*for its child process"));
    EXPECT_THAT(job.err(), HasSubstr("\nrank 1, child stall_worker, for which it waits"));
  }
}

// By its state nobody could tell it from the others.
TEST(HangTimeoutTest, ARankWhoseStackIsAnotherIsTheRootCause) {
  for (const char* several : {"--nproc-per-node", "--local-nodes"}) {
    DrunProcess job(watched() + Arguments{several, "4"} +
                    shell("if [ $RANK = 2 ]; then exec \"$1\" lock-twice; fi; exec \"$1\" lock"));
    expect_end(job, 124);
    EXPECT_THAT(job.err(), ContainsRegex("rank.* 0.* waits? in futex"));
    EXPECT_THAT(job.err(),
                ContainsRegex("stacks of ranks 0-3 on .*: rank 2 is somewhere else than the other "
                              "3: in .*take_a_lock_twice"));
    EXPECT_THAT(job.err(), ContainsRegex("job failed: rank 2 .*take_a_lock_twice"));
  }
}

TEST(HangTimeoutTest, ANodeThatGetsOnIsEnoughForAll) {
  DrunProcess job(watched() + Arguments{"--local-nodes", "2"} +
                  shell("if [ $RANK = 1 ]; then exec \"$1\" writes 7; fi; exec \"$1\" sleeps 7"));
  expect_end(job, 0);
  EXPECT_THAT(job.err(), Not(HasSubstr("hangs")));
}

TEST(HangTimeoutTest, AHangSpendsARestart) {
  DrunProcess job(watched() + Arguments{"--max-restarts", "1"} +
                  shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; exec \"$1\" lock"));
  expect_end(job, 0);
  EXPECT_THAT(job.err(), HasSubstr("the job hangs"));
  EXPECT_THAT(job.err(), HasSubstr("restart 1/1"));
}

TEST(HangTimeoutTest, WithStopThereIsNoRestart) {
  DrunProcess job(watched() + Arguments{"--max-restarts", "1", "--on-hang", "stop"} +
                  shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; exec \"$1\" lock"));
  expect_end(job, 124);
}

TEST(HangTimeoutTest, WithReportTheJobGoesOn) {
  DrunProcess job(watched() + Arguments{"--on-hang", "report"} + worker("sleeps", 12));
  expect_end(job, 0);
  const std::string said = job.err();
  const auto hangs = said.find("the job hangs");
  ASSERT_NE(hangs, std::string::npos) << said;
  EXPECT_EQ(said.find("the job hangs", hangs + 1), std::string::npos)
      << "its stacks were taken, which is no progress: " << said;
  EXPECT_THAT(said, HasSubstr("stacks of rank 0"));
}

// Workers that spin in a collective, as NCCL's do, under a service like NCCL's.
class CollectiveTest : public testing::Test {
 protected:
  DrunProcess job(const std::string& kind, const std::string& time, int seconds,
                  const Arguments& more = {}) {
    return DrunProcess({Arguments{places::program("drun")} + watched(time) +
                            Arguments{"--nproc-per-node", "2"} + more + worker(kind, seconds),
                        {"NCCL_RAS_ADDR=" + port_.endpoint()},
                        {},
                        false});
  }

  ReservedPort port_;
};

TEST_F(CollectiveTest, ARankThatDoesNotComeToOneIsNamed) {
  DrunProcess stuck = job("collective-stuck", "2", 60);
  expect_end(stuck, 124);
  EXPECT_THAT(stuck.err(), HasSubstr("the job hangs: no rank of 2 has made progress for 2.0 s"));
  EXPECT_THAT(stuck.err(), HasSubstr("; NCCL: rank 1 has begun 99 AllReduce, the other 100"));
  EXPECT_THAT(stuck.err(),
              ContainsRegex("job failed: rank 1 .*hangs: NCCL says that it is behind"));
}

// On three nodes, of which some tell seconds later than the others: their ranks are asked for
// dumps, and write none.
TEST_F(CollectiveTest, ARankOfAnotherNodeIsNamedWhoeverTellsFirst) {
  for (const auto& slow : std::vector<std::vector<int>>{{2}, {0, 1}}) {
    SCOPED_TRACE(slow.front());
    const TempDir folder;
    std::vector<FileDescriptor> pipes;
    for (const int rank : slow) {
      const std::string pipe = folder.path() / ("pipe_" + std::to_string(rank) + ".pipe");
      ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
      pipes.emplace_back(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_TRUE(pipes.back().valid());
    }
    DrunProcess stuck(
        {Arguments{places::program("drun")} + watched() + Arguments{"--local-nodes", "3"} +
             shell("[ $RANK = 2 ] || exec \"$1\" lock; exec \"$1\" collective-stuck 60"),
         {"NCCL_RAS_ADDR=" + port_.endpoint(),
          "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + std::string(folder.path() / "pipe_"),
          "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + std::string(folder.path() / "trace_")},
         {},
         false});
    expect_end(stuck, 124);
    EXPECT_THAT(stuck.err(),
                ContainsRegex("job failed: rank 2 .*hangs: NCCL says that it is behind"));
    EXPECT_THAT(stuck.err(), ContainsRegex("also failed:\n *ranks 0-1: hangs: it waits in futex"));
    EXPECT_THAT(stuck.err(), Not(ContainsRegex("job failed: rank [01] ")));
  }
}

TEST_F(CollectiveTest, WhileItIsStuckStatusSaysWhoIsBehind) {
  DrunProcess stuck =
      job("collective-stuck", "1", 60,
          {"--rdzv-id", port_.endpoint(), "--on-hang", "report", "--stacks-on-failure", "off"});
  ASSERT_TRUE(stuck.wait_for_err("; NCCL: rank 1 has begun")) << stuck.err();
  Launch launch;
  launch.argv = {places::program("drunctl"), "status", port_.endpoint()};
  const Finished status = DrunProcess(launch).finish();
  EXPECT_THAT(status.out, HasSubstr("\n  NCCL: rank 1 has begun 99 AllReduce, the other 100\n"))
      << status.err;
  stuck.signal(SIGTERM);
  expect_end(stuck, 143);
}

TEST_F(CollectiveTest, IfNobodyIsBehindThatIsToldAndNotActedOn) {
  DrunProcess even = job("collective-even", "1", 5);
  expect_end(even, 0);
  EXPECT_THAT(even.err(), ContainsRegex("not taken for a hang, because .*; NCCL: all ranks have "
                                        "begun the same collectives"));
}

TEST_F(CollectiveTest, WhoBeginsMoreIsLeftAlone) {
  DrunProcess alive = job("collective-goes-on", "1", 5);
  expect_end(alive, 0);
  EXPECT_THAT(alive.err(), Not(HasSubstr("the job hangs")));
}

// drun's own question makes them write: that is no new life of theirs.
TEST(HangTimeoutTest, AHangIsReportedOnceThoughDumpsWereAskedFor) {
  const TempDir folder;
  DrunProcess job(
      {Arguments{places::program("drun")} + watched("1") +
           Arguments{"--on-hang", "report", "--timeout", "8", "--stacks-on-failure", "off"} +
           worker("recorder"),
       {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + std::string(folder.path() / "pipe_"),
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + std::string(folder.path() / "trace_")},
       {},
       false});
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("the flight recorder has written "));
  const auto first = job.err().find("the job hangs");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(job.err().find("the job hangs", first + 1), std::string::npos) << job.err();
}

TEST(HangTimeoutTest, TheFlightRecorderIsAskedForItsDumps) {
  const TempDir folder;
  const std::string trace = folder.path() / "trace_";
  DrunProcess job({Arguments{places::program("drun")} + watched() +
                       Arguments{"--nproc-per-node", "2"} + worker("recorder"),
                   {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + std::string(folder.path() / "pipe_"),
                    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + trace},
                   {},
                   false});
  expect_end(job, 124);
  EXPECT_THAT(job.err(),
              HasSubstr("the flight recorder has written " + trace + "0 and " + trace + "1"));
  EXPECT_EQ(read_file(trace + "1"), "trace of 1");
}

// It says of the whole job, once.
TEST(HangTimeoutTest, AHangIsAnEvent) {
  const TempDir folder;
  const std::string told = folder.path() / "told";
  DrunProcess job(watched() +
                  Arguments{"--local-nodes", "2", "--on-hang", "stop", "--on-event",
                            "hang:echo \"$DRUN_EVENT_GLOBAL_RANK $DRUN_EVENT_REASON\" >>" + told} +
                  worker("lock"));
  expect_end(job, 124);
  EXPECT_EQ(read_file(told), "-1 none of the job's 2 ranks makes progress any more\n");
}

TEST(HangTimeoutTest, WithoutStacksNobodyWaitsForThem) {
  DrunProcess job(watched() + Arguments{"--stacks-on-failure", "off"} + worker("lock"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("waits in futex"));
  EXPECT_THAT(job.err(), Not(HasSubstr("stacks")));
}

// Else a node that does not look would keep all others from finding a hang.
TEST(HangTimeoutTest, AllNodesMustLook) {
  const ReservedPort port;
  const Arguments job{"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--no-python"};
  DrunProcess first(watched("5") + Arguments{"--on-hang", "stop"} + job + Arguments{"true"});
  ASSERT_TRUE(first.wait_for_err("1 of 2 nodes")) << first.err();
  DrunProcess second(job + Arguments{"true"});
  expect_end(second, 125);
  EXPECT_THAT(second.err(),
              HasSubstr("has no --hang-timeout, no --on-hang; the job has "
                        "--hang-timeout 5s, --on-hang stop; give all nodes the same"));
  first.signal(SIGTERM);
  expect_end(first, 143);
}

TEST(HangTimeoutTest, WhatToDoWithoutATimeIsAMistake) {
  const Finished refused = run_drun({"--on-hang", "stop", "true"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--hang-timeout"));
}

}  // namespace
}  // namespace drun::test
