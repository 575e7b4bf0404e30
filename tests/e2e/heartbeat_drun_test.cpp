// The limits of heartbeats, with real workers that give some and then hang.
#include <signal.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/expect_end.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBeat = R"(beat() { echo "$1" > "$DRUN_HEARTBEAT_FILE"; }; )";

Arguments shell(const std::string& script) {
  return {"--no-python", "sh", "-c", kBeat + script};
}

TEST(HeartbeatDrunTest, AWorkerThatStopsGivingThemHasFailedAndIsNamedWithItsStep) {
  DrunProcess job(
      Arguments{"--nproc-per-node", "2", "--heartbeat-timeout", "3", "--stacks-on-failure", "120"} +
      shell("if [ $RANK = 1 ]; then beat 41; exec sleep 1000; fi; "
            "while :; do beat 42; sleep 0.05; done"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("job failed: rank 1 (local rank 1"));
  EXPECT_THAT(job.err(),
              HasSubstr("gave no heartbeat for 3.0 s after step 41 (--heartbeat-timeout)"));
  EXPECT_THAT(job.err(), ContainsRegex("stacks of ranks 0-1(.|\n)*job failed: "));
}

TEST(HeartbeatDrunTest, AHangIsAFailureLikeAnyAndSpendsARestart) {
  DrunProcess job(Arguments{"--max-restarts", "1", "--heartbeat-start-timeout", "5"} +
                  shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; exec sleep 1000"));
  expect_end(job, 0);
  EXPECT_THAT(job.err(), HasSubstr("gave no heartbeat within 5.0 s of its start"));
}

TEST(HeartbeatDrunTest, WhoGivesNoneIsLeftAloneWithoutALimitForTheFirst) {
  DrunProcess job(Arguments{"--nproc-per-node", "2", "--heartbeat-timeout", "2"} +
                  shell("[ $RANK = 0 ] || beat end; sleep 4"));
  expect_end(job, 0);
}

TEST(HeartbeatDrunTest, DrunctlGivesOne) {
  const std::string drunctl = places::program("drunctl");
  DrunProcess job(Arguments{"--heartbeat-timeout", "1"} +
                  shell("'" + drunctl + "' heartbeat 7 && exec sleep 1000"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("after step 7"));
}

TEST(HeartbeatDrunTest, DrunctlSaysWhyItCannot) {
  const auto ctl = [](Arguments arguments, std::vector<std::string> environment) {
    Launch launch;
    launch.argv = Arguments{places::program("drunctl"), "heartbeat"} + arguments;
    launch.environment = std::move(environment);
    return DrunProcess(launch).finish();
  };
  const Finished outside = ctl({}, {"DRUN_HEARTBEAT_FILE"});
  EXPECT_EQ(outside.code, 2);
  EXPECT_THAT(outside.err, HasSubstr("DRUN_HEARTBEAT_FILE is not set"));
  const Finished word = ctl({"seven"}, {"DRUN_HEARTBEAT_FILE=/nowhere/x"});
  EXPECT_EQ(word.code, 2);
  EXPECT_THAT(word.err, HasSubstr("seven"));
  const Finished folder = ctl({"7"}, {"DRUN_HEARTBEAT_FILE=/nowhere/x"});
  EXPECT_EQ(folder.code, 125);
  EXPECT_THAT(folder.err, HasSubstr("/nowhere/x"));
}

TEST(HeartbeatDrunTest, WithoutAPlaceForFilesThereAreNoLimits) {
  const Finished refused = run_drun({"--heartbeat-timeout", "1", "--log-dir", "/dev/null", "true"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--heartbeat-timeout"));
  EXPECT_THAT(refused.err, Not(HasSubstr("\n\n")));
}

// A step that hangs on one of two nodes.
TEST(HeartbeatDrunTest, OnTwoNodesTheHangOfOneEndsTheJob) {
  const TempDir folder;
  const std::string told = folder.path() / "told";
  DrunProcess job(Arguments{"--local-nodes", "2", "--heartbeat-timeout", "3", "--stacks-on-failure",
                            "120", "--on-event",
                            "hang:echo \"$DRUN_EVENT_GLOBAL_RANK $DRUN_EVENT_REASON\" >>" + told} +
                  shell("if [ $RANK = 1 ]; then beat 3; exec sleep 1000; fi; "
                        "while :; do beat 4; sleep 0.05; done"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), HasSubstr("job failed: rank 1 "));
  EXPECT_THAT(job.err(), HasSubstr("stacks of ranks 0-1"));
  EXPECT_EQ(read_file(told), "1 gave no heartbeat for 3.0 s after step 3 (--heartbeat-timeout)\n");
}

// The other node has beaten before, and is late first, but it has come further.
TEST(HeartbeatDrunTest, OnTwoNodesTheRankBehindIsNamedThoughTheOtherIsLateFirst) {
  const TempDir folder;
  const std::string beaten = folder.path() / "beaten";
  DrunProcess job(
      Arguments{"--local-nodes", "2", "--heartbeat-timeout", "6", "--stacks-on-failure", "120"} +
      shell("if [ $RANK = 0 ]; then beat 4; : >'" + beaten + "'; else until [ -e '" + beaten +
            "' ]; do sleep 0.02; done; sleep 0.5; beat 3; fi; exec sleep 1000"));
  expect_end(job, 124);
  EXPECT_THAT(job.err(), ContainsRegex("job failed: rank 1 .* after step 3 "));
  EXPECT_THAT(job.err(), HasSubstr("rank 0: gave no heartbeat for 6.0 s after step 4"));
}

// ---- what is done about it ----

TEST(HeartbeatDrunTest, WithReportTheJobGoesOnAndItsNextHangIsTold) {
  const TempDir folder;
  const std::string go = folder.path() / "go";
  DrunProcess job(
      Arguments{"--heartbeat-timeout", "1", "--on-hang", "report", "--stacks-on-failure", "120"} +
      shell("beat 1; until [ -e '" + go + "' ]; do sleep 0.05; done; beat 2; exec sleep 1000"));
  ASSERT_TRUE(job.wait_for_err("stacks of rank 0")) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("warning: rank 0: gave no heartbeat for 1.0 s after step 1 "));
  std::ofstream(go) << "on";
  ASSERT_TRUE(job.wait_for_err("after step 2")) << job.err();
  job.signal(SIGTERM);
  expect_end(job, 143);
}

TEST(HeartbeatDrunTest, WithStopThereIsNoRestart) {
  DrunProcess job(
      Arguments{"--max-restarts", "1", "--heartbeat-timeout", "1", "--on-hang", "stop"} +
      shell("[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0; beat 1; exec sleep 1000"));
  expect_end(job, 124);
}

// Workers with PyTorch's flight recorder, in a folder.
class RecordersTest : public testing::Test {
 protected:
  DrunProcess job(const Arguments& flags, const std::string& script) {
    Launch launch;
    launch.environment = {
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=" + std::string(folder_.path() / "pipe_"),
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + trace_, "TORCHELASTIC_ENABLE_FILE_TIMER=1"};
    return DrunProcess(
        flags + Arguments{"--stacks-on-failure", "120"} +
            shell(script + " exec '" + places::program("stall_worker") + "' recorder"),
        std::move(launch));
  }

  const TempDir folder_;
  const std::string trace_ = folder_.path() / "trace_";
};

TEST_F(RecordersTest, AreAskedForTheirDumpsAndTheReportNamesAllFiles) {
  const std::string report = folder_.path() / "report.json";
  DrunProcess hung = job({"--nproc-per-node", "2", "--heartbeat-timeout", "2", "--report", report,
                          "--log-dir", std::string(folder_.path() / "logs")},
                         "beat 1;");
  expect_end(hung, 124);
  EXPECT_THAT(hung.err(),
              HasSubstr("the flight recorder has written " + trace_ + "0 and " + trace_ + "1"));
  EXPECT_EQ(read_file(trace_ + "1"), "trace of 1");
  const std::string json = read_file(report);
  EXPECT_THAT(json, HasSubstr("\"flight_recorder_files\": [\n    \"" + trace_ + "0\",\n    \"" +
                              trace_ + "1\"\n  ]"));
  EXPECT_THAT(json, ContainsRegex("\"stack_files\": \\[\n    \"[^\"]*/stacks_1.txt\"\n  \\]"));
}

// They wait for the rank that hangs, and know in which collective.
TEST_F(RecordersTest, ThoseOfTheOtherNodesAreAskedToo) {
  DrunProcess hung =
      job({"--local-nodes", "2", "--heartbeat-timeout", "2"},
          "if [ $RANK = 0 ]; then (while :; do beat 2; sleep 0.05; done) & else beat 1; fi;");
  expect_end(hung, 124);
  EXPECT_THAT(hung.err(), HasSubstr("job failed: rank 1 "));
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(read_file(trace_ + rank), std::string("trace of ") + rank);
}

// ---- torch's timers, without torch ----

// What its client does.
constexpr const char* kTimer = R"(
import json, os, signal, sys, time
def timer(scope, after, sent=signal.SIGKILL):
    file = os.open(os.environ["TORCHELASTIC_TIMER_FILE"], os.O_WRONLY | os.O_NONBLOCK)
    expires = time.time() + after if after > 0 else -1
    request = {"version": 1, "pid": os.getpid(), "scope_id": scope, "expiration_time": expires,
               "signal": int(sent)}
    os.write(file, json.dumps(request).encode() + b"\n")
    os.close(file)
)";

DrunProcess timed(const Arguments& flags, const std::string& script) {
  Launch launch;
  launch.environment = {"TORCHELASTIC_ENABLE_FILE_TIMER=1"};
  return DrunProcess(flags + Arguments{"--stacks-on-failure", "120", "--no-python", "python3", "-c",
                                       kTimer + script},
                     std::move(launch));
}

TEST(TimerDrunTest, OneThatIsOverIsAFailureAndTheStacksAreShown) {
  auto job = timed({"--max-restarts", "1", "--nproc-per-node", "2"},
                   "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '1': sys.exit(7)\n"
                   "if os.environ['RANK'] == '1': timer('step', 0.5)\n"
                   "time.sleep(1000)\n");
  expect_end(job, 7);
  EXPECT_THAT(job.err(),
              ContainsRegex("stacks of ranks 0-1(.|\n)*rank 1 .*: its timer 'step' is over"));
}

TEST(TimerDrunTest, WithReportTheRankGoesOn) {
  auto job = timed({"--on-hang", "report"}, "timer('step', 0.3)\ntime.sleep(1000)\n");
  ASSERT_TRUE(job.wait_for_err("stacks of rank 0")) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("warning: rank 0: its timer 'step' is over"));
  job.signal(SIGTERM);
  expect_end(job, 143);
}

TEST(TimerDrunTest, OneThatIsReleasedInTimeDoesNothing) {
  auto job = timed({}, "timer('step', 600); timer('step', 0); timer('next', 600)\n");
  expect_end(job, 0);
  EXPECT_EQ(job.err(), "");
}

TEST(TimerDrunTest, ASignalThatMayMendThingsIsSent) {
  auto job = timed({},
                   "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
                   "timer('step', 0.3, signal.SIGUSR1)\n"
                   "time.sleep(1000)\n");
  expect_end(job, 0);
  EXPECT_THAT(job.err(), HasSubstr("its timer 'step' is over"));
}

// As below `timeout` in a shell.
TEST(TimerDrunTest, OneOfAChildWithAProcessGroupOfItsOwnIsServedToo) {
  auto job = timed({},
                   "child = os.fork()\n"
                   "if child == 0:\n"
                   "    os.setsid()\n"
                   "    signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))\n"
                   "    timer('step', 0.3, signal.SIGUSR1)\n"
                   "    time.sleep(1000)\n"
                   "sys.exit(os.WEXITSTATUS(os.waitpid(child, 0)[1]))\n");
  expect_end(job, 3);
  EXPECT_THAT(job.err(), HasSubstr("its timer 'step' is over"));
}

TEST(TimerDrunTest, NobodyElsesProcessIsHarmed) {
  auto job = timed({},
                   "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
                   "own = os.getpid; os.getpid = os.getppid; timer('parent', 0.1)\n"
                   "os.getpid = own; timer('own', 1, signal.SIGUSR1)\n"
                   "time.sleep(1000)\n");
  expect_end(job, 0);
  EXPECT_THAT(job.err(), Not(HasSubstr("'parent'")));
}

TEST(TimerDrunTest, WithoutTheVariableThereIsNone) {
  const Finished job = run_drun({"sh", "-c", "exit ${TORCHELASTIC_TIMER_FILE:-0}"});
  EXPECT_EQ(job.code, 0) << job.err;
}

}  // namespace
}  // namespace drun::test
