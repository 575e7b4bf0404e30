// One agent, or two that meet on this machine, as processes of their own, and their workers.
#include "launcher/agent/agent.hpp"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Launch agent(const Arguments& flags, const std::string& script,
             const std::filesystem::path& directory = {}) {
  Launch launch;
  launch.argv = Arguments{std::filesystem::read_symlink("/proc/self/exe"), "--be-agent"} + flags +
                Arguments{"sh", "-c", script};
  launch.directory = directory;
  return launch;
}

Finished run(const Arguments& flags, const std::string& script) {
  return DrunProcess(agent(flags, script)).finish();
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

TEST(AgentTest, RunsTheWorkersAndEndsAsTheyDo) {
  const auto finished = run({"-n", "2"}, "echo rank $RANK of $WORLD_SIZE; echo err >&2");
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, AllOf(HasSubstr("rank 0 of 2\n"), HasSubstr("rank 1 of 2\n")));
  EXPECT_EQ(count(finished.err, "err\n"), 2U);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, TheFirstFailureEndsTheOthersAndIsReported) {
  const auto finished = run({"-n", "3"}, "[ $RANK = 1 ] || exec sleep 100; echo why >&2; exit 7");
  EXPECT_EQ(finished.code, 7);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("rank 1"), HasSubstr("exit code 7"), HasSubstr("why")));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, AFailureIsTriedAgainAsOftenAsItMay) {
  const auto finished =
      run({"-n", "2", "--max-restarts", "2"}, "echo try $TORCHELASTIC_RESTART_COUNT; exit 3");
  EXPECT_EQ(finished.code, 3);
  for (const char* each : {"try 0\n", "try 1\n", "try 2\n"})
    EXPECT_GE(count(finished.out, each), 1U) << finished.out;
  EXPECT_EQ(count(finished.out, "try 3"), 0U);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, AProgramThatIsNotThereIsSaid) {
  Launch launch = agent({"-n", "2"}, "");
  launch.argv.resize(4);
  launch.argv.emplace_back("/no/such/program");
  const auto finished = DrunProcess(launch).finish();
  EXPECT_EQ(finished.code, 127) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("/no/such/program"));
}

// ---- signals ----

TEST(AgentTest, ARequestToStopEndsTheWorkersAndGivesTheSignalsCode) {
  for (const int signal : {SIGTERM, SIGINT}) {
    DrunProcess drun(agent({"-n", "2"},
                           "trap 'echo told; exit 0' TERM INT; echo runs; "
                           "while :; do sleep 0.02; done"));
    ASSERT_TRUE(drun.wait_for_out("runs\nruns\n"));
    drun.signal(signal);
    const auto finished = drun.finish();
    EXPECT_EQ(finished.code, 128 + signal);
    EXPECT_EQ(count(finished.out, "told\n"), 2U);
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(AgentTest, ASecondRequestKillsThem) {
  DrunProcess drun(agent({"-n", "2", "--shutdown-timeout", "100"},
                         "trap 'echo told' INT; echo runs; while :; do sleep 0.02; done"));
  ASSERT_TRUE(drun.wait_for_out("runs\nruns\n"));
  drun.signal(SIGINT);
  ASSERT_TRUE(drun.wait_for_out("told\n"));
  drun.signal(SIGINT);
  const auto finished = drun.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, WhoIgnoresARequestIsKilledAfterTheGrace) {
  DrunProcess drun(agent({"--shutdown-timeout", "0.2"},
                         "trap '' TERM; echo runs; while :; do sleep 0.02; done"));
  ASSERT_TRUE(drun.wait_for_out("runs\n"));
  const auto begun = std::chrono::steady_clock::now();
  drun.signal(SIGTERM);
  const auto finished = drun.finish();
  EXPECT_EQ(finished.code, 143);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(200));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, ASignalThatIsForwardedReachesTheWorkers) {
  DrunProcess drun(agent({"-n", "2", "--forward-signals", "SIGUSR1"},
                         "trap 'echo usr1; exit 0' USR1; echo runs; while :; do sleep 0.02; done"));
  ASSERT_TRUE(drun.wait_for_out("runs\nruns\n"));
  drun.signal(SIGUSR1);
  const auto finished = drun.finish();
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(count(finished.out, "usr1\n"), 2U);
  EXPECT_THAT(finished.err, HasSubstr("received SIGUSR1: passed on to the workers\n"));
}

TEST(AgentTest, TheWorkersOfAnAgentThatIsKilledEndWithIt) {
  DrunProcess drun(agent({"-n", "2"}, "echo runs; exec sleep 200"));
  ASSERT_TRUE(drun.wait_for_out("runs\nruns\n"));
  drun.signal(SIGKILL);
  ASSERT_TRUE(drun.wait());
  EXPECT_TRUE(drun.survivors_gone(kPatience));
}

// ---- time ----

TEST(AgentTest, ATimeLimitEndsTheJob) {
  const auto finished = run({"-n", "2", "--timeout", "1"}, "exec sleep 100");
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(AgentTest, WhoIsAloneSaysThatItWaitsAndGivesUpInTime) {
  const ReservedPort port;
  const auto finished =
      run({"--nnodes", "2", "--rdzv-endpoint", port.endpoint(), "--rdzv-conf", "join_timeout=4"},
          "echo runs");
  EXPECT_EQ(finished.code, 124);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("waiting"));
}

// ---- two of them ----

class TwoAgentsTest : public ::testing::Test {
 protected:
  Launch node(const std::string& script, const Arguments& more = {}) {
    return agent(Arguments{"--nnodes", "2", "--rdzv-endpoint", port_.endpoint()} + more, script,
                 folder_.path());
  }
  const ReservedPort port_;
  const TempDir folder_;
};

TEST_F(TwoAgentsTest, MeetAndEndAlike) {
  // The one that fails waits until the other has spoken, which would be stopped before it else.
  const std::string spoken = (folder_.path() / "spoken").string();
  const std::string script = "echo $RANK of $WORLD_SIZE at $MASTER_ADDR; [ $RANK = 1 ] || : > " +
                             spoken + "; until [ -e " + spoken +
                             " ]; do sleep 0.02; done; exit $GROUP_RANK";
  DrunProcess first(node(script));
  DrunProcess second(node(script));
  const auto one = first.finish();
  const auto two = second.finish();
  EXPECT_EQ(one.code, 1) << one.err;
  EXPECT_EQ(two.code, 1) << two.err;
  const std::string all = one.out + two.out;
  EXPECT_THAT(all, AllOf(HasSubstr("0 of 2 at 127.0.0.1\n"), HasSubstr("1 of 2 at 127.0.0.1\n")));
  EXPECT_THAT(one.survivors, IsEmpty());
  EXPECT_THAT(two.survivors, IsEmpty());
}

TEST_F(TwoAgentsTest, ARequestToOneStopsBoth) {
  const std::string script = "echo runs; exec sleep 100";
  DrunProcess first(node(script));
  DrunProcess second(node(script));
  ASSERT_TRUE(first.wait_for_out("runs\n")) << first.err();
  ASSERT_TRUE(second.wait_for_out("runs\n")) << second.err();
  second.signal(SIGINT);
  const auto one = first.finish();
  const auto two = second.finish();
  EXPECT_EQ(one.code, 130) << one.err;
  EXPECT_EQ(two.code, 130) << two.err;
  EXPECT_THAT(one.err, HasSubstr("SIGINT on "));
  EXPECT_THAT(one.survivors, IsEmpty());
}

TEST_F(TwoAgentsTest, AnAgentThatIsKilledLeavesTheOtherToGoOn) {
  const std::string script = "echo runs $WORLD_SIZE; [ $WORLD_SIZE = 2 ] || exit 0; exec sleep 100";
  const Arguments elastic = {"--nnodes",       "1:2", "--rdzv-conf", "last_call_timeout=1",
                             "--max-restarts", "1"};
  DrunProcess first(node(script, elastic));
  ASSERT_TRUE(eventually([&] { return first.running(); }));
  DrunProcess second(node(script, elastic));
  ASSERT_TRUE(first.wait_for_out("runs 2\n")) << first.err();
  ASSERT_TRUE(second.wait_for_out("runs 2\n")) << second.err();
  second.signal(SIGKILL);
  ASSERT_TRUE(second.wait());
  const auto one = first.finish();
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("runs 1\n"));
  EXPECT_THAT(one.survivors, IsEmpty());
}

}  // namespace
}  // namespace drun::test
