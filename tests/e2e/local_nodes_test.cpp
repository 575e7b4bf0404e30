// --local-nodes: its ports and ranks, what its signals do, what it leaves when one of its processes
// is killed.
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/process_state.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::vector<pid_t> children_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;)
    children.push_back(child);
  return children;
}

class LocalNodesTest : public testing::Test {
 protected:
  static std::vector<std::string> job(const std::string& nnodes) {
    return {"--local-nodes",
            "3",
            "--nnodes",
            nnodes,
            "--nproc-per-node",
            "2",
            "sh",
            "-c",
            "echo up $RANK; exec sleep 1000"};
  }
  static bool all_run(DrunProcess& drun) {
    for (int rank = 0; rank < 6; ++rank)
      if (!drun.wait_for_out("up " + std::to_string(rank) + "\n")) return false;
    return true;
  }
};

TEST_F(LocalNodesTest, NothingIsLeftWhenTheirParentIsKilled) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  drun.signal(SIGKILL);
  EXPECT_TRUE(drun.wait());
  EXPECT_TRUE(drun.survivors_gone(kPatience)) << testing::PrintToString(drun.survivors());
}

TEST_F(LocalNodesTest, TheJobEndsWhenANodeIsKilledThatItNeeds) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[1], SIGKILL);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  EXPECT_THAT(finished.err, HasSubstr("drun: error: an agent (pid " + std::to_string(agents[1]) +
                                      ") was killed by SIGKILL\n"));
  EXPECT_THAT(finished.err, HasSubstr("drun: error: stopping: 2 of at least 3 nodes left\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// Not that they got the SIGTERM by which the parent stops them.
TEST_F(LocalNodesTest, TheNodesThatAreStoppedForALostOneSayWhy) {
  const TempDir directory;
  const std::string report = (directory.path() / "report").string();
  const std::string events = (directory.path() / "events").string();
  auto words = job("3");
  words.insert(words.begin(), {"--report", report, "--events", events});
  DrunProcess drun(words);
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[1], SIGKILL);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  const std::string why = "an agent (pid " + std::to_string(agents[1]) +
                          ") was killed by SIGKILL; 2 of at least 3 nodes left";
  EXPECT_THAT(read_file(report), HasSubstr("\"exit_code\": 137,\n  \"text\": \"" + why));
  EXPECT_THAT(read_file(events), HasSubstr("\"exit_code\":137,\"raw_error\":\"" + why));
  EXPECT_THAT(read_file(events), Not(HasSubstr("\"exit_code\":143,\"raw_error\"")));
}

TEST_F(LocalNodesTest, TheJobGoesOnWithFewerNodesWhereThatIsAllowed) {
  DrunProcess drun(job("2:3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[2], SIGKILL);
  EXPECT_TRUE(drun.wait_for_err("2 nodes, 4 ranks")) << drun.err();
  drun.signal(SIGTERM);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGTERM);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(LocalNodesTest, AJobThatSucceedsWithoutALostNodeSucceeds) {
  const TempDir directory;
  const std::string file = (directory.path() / "go-on").string();
  DrunProcess drun({"--local-nodes", "3", "--nnodes", "2:3", "sh", "-c",
                    "echo up $RANK of $WORLD_SIZE; while [ ! -e " + file +
                        " ]; do sleep 0.02; done; echo done $WORLD_SIZE"});
  for (const std::string rank : {"0", "1", "2"})
    ASSERT_TRUE(drun.wait_for_out("up " + rank + " of 3\n")) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[1], SIGKILL);
  for (const std::string rank : {"0", "1"})
    ASSERT_TRUE(drun.wait_for_out("up " + rank + " of 2\n")) << drun.err();
  directory.write("go-on", "");
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("done 2\ndone 2\n"));
}

// Whichever leads: it stays until it knows that the others are not told to go as well.
TEST_F(LocalNodesTest, AJobThatSucceedsWithoutANodeThatWasToldToGoSucceeds) {
  for (const std::size_t goes : {0U, 1U, 2U}) {
    const TempDir directory;
    const std::string file = (directory.path() / "go-on").string();
    DrunProcess drun(
        {"--local-nodes", "3", "--nnodes", "2:3", "sh", "-c",
         "echo up $RANK of $WORLD_SIZE; while [ ! -e " + file + " ]; do sleep 0.02; done"});
    for (const std::string rank : {"0", "1", "2"})
      ASSERT_TRUE(drun.wait_for_out("up " + rank + " of 3\n")) << drun.err();
    const auto agents = children_of(drun.pid());
    ASSERT_THAT(agents, SizeIs(3));
    ::kill(agents[goes], SIGTERM);
    for (const std::string rank : {"0", "1"})
      ASSERT_TRUE(drun.wait_for_out("up " + rank + " of 2\n")) << drun.err();
    directory.write("go-on", "");
    const Finished finished = drun.finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("; this node leaves the job\n"));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST_F(LocalNodesTest, SigtermToAnElasticJobEndsAllOfIt) {
  DrunProcess drun(job("1:3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  drun.signal(SIGTERM);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGTERM) << finished.err;
  EXPECT_THAT(finished.err, Not(HasSubstr("round 2")));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(LocalNodesTest, TheMasterPortIsThatOfTheJob) {
  for (const bool is_static : {false, true}) {
    const ReservedPort port;
    const std::string number = std::to_string(port.number());
    std::vector<std::string> arguments{"--local-nodes", "3", "--master-port", number};
    if (is_static)
      arguments.insert(arguments.end(), {"--rdzv-backend", "static", "--master-addr", "127.0.0.1"});
    arguments.insert(arguments.end(), {"sh", "-c", "echo $MASTER_ADDR:$MASTER_PORT"});
    const Finished finished = run_drun(arguments);
    EXPECT_EQ(finished.code, 0) << finished.err;
    const std::string line = port.endpoint() + "\n";
    EXPECT_EQ(finished.out, line + line + line);
  }
}

TEST_F(LocalNodesTest, TheOthersEndWithANodeThatCannotJoin) {
  DrunProcess holder({"--local-nodes", "1", "--nproc-per-node", "1", "sh", "-c",
                      "echo port $MASTER_PORT.; exec sleep 1000"});
  ASSERT_TRUE(holder.wait_for_out(".\n")) << holder.err();
  const std::string port = holder.out().substr(5, holder.out().find('.') - 5);
  const Finished finished =
      run_drun({"--local-nodes", "3", "--master-port", port, "sh", "-c", "echo ran"});
  EXPECT_EQ(finished.code, 125);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, HasSubstr("Address already in use"));
  EXPECT_THAT(finished.err, HasSubstr("drun: error: stopping: 2 of at least 3 nodes left\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(LocalNodesTest, NodesBeyondTheLargestNumberAreSpares) {
  const TempDir directory;
  const std::string file = (directory.path() / "go-on").string();
  DrunProcess drun({"--local-nodes", "4", "--nnodes", "1:3", "sh", "-c",
                    "echo world $WORLD_SIZE; while [ ! -e " + file + " ]; do sleep 0.02; done"});
  EXPECT_TRUE(drun.wait_for_err("spare: the job runs with 3 of 1 to 3 nodes")) << drun.err();
  directory.write("go-on", "");
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, testing::Not(HasSubstr("refused")));
  EXPECT_THAT(finished.out, HasSubstr("world 3"));
}

TEST_F(LocalNodesTest, AStoppedAgentHearsARequestToStop) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[1], SIGSTOP);
  ASSERT_TRUE(eventually([&] { return stopped(agents[1]); }));
  drun.signal(SIGINT);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGINT) << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(LocalNodesTest, TheFourthRequestKillsAnAgentThatHangs) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  // As a debugger holds it: SIGCONT does not let it go on.
  if (::ptrace(PTRACE_SEIZE, agents[1], 0, 0) != 0) GTEST_SKIP() << "ptrace is not allowed here";
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, agents[1], 0, 0), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(agents[1], &status, __WALL), agents[1]);
  ASSERT_TRUE(WIFSTOPPED(status));
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    drun.signal(signal);
  ASSERT_TRUE(drun.wait_for_err(" again: killing the agents\n")) << drun.err();
  while (::waitpid(agents[1], &status, __WALL) == agents[1] && WIFSTOPPED(status))
    ::ptrace(PTRACE_CONT, agents[1], 0, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(drun.wait());
  EXPECT_GT(drun.code(), 128);
  EXPECT_TRUE(drun.survivors_gone(kPatience)) << testing::PrintToString(drun.survivors());
}

// Blocked until drun is ready for it: from its first instruction on.
TEST_F(LocalNodesTest, ASignalBeforeTheAgentsAreThereStopsTheJob) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  for (const char* nodes : {"--standalone", "--local-nodes=3"}) {
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    DrunProcess drun({nodes, "sleep", "1000"});
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    drun.signal(SIGTERM);
    const Finished finished = drun.finish();
    EXPECT_EQ(finished.code, 128 + SIGTERM) << finished.err;
    EXPECT_THAT(finished.err, testing::Not(HasSubstr("an agent"))) << nodes;
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST_F(LocalNodesTest, TheLimitOfDescriptorsIsRaisedForTheAgentsAndNotForTheWorkers) {
  Launch launch;
  launch.argv = {"/bin/sh", "-c",
                 "ulimit -Sn 64; exec " + drun_path() + " --local-nodes 20 sh -c 'ulimit -Sn'"};
  DrunProcess soft(launch);
  const Finished finished = soft.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
  const auto lines = split_lines(finished.out);
  EXPECT_THAT(lines, SizeIs(20));
  EXPECT_THAT(lines, testing::Each(std::string("64")));

  launch.argv.back() = "ulimit -n 64; exec " + drun_path() + " --local-nodes 20 true";
  DrunProcess hard(launch);
  EXPECT_EQ(hard.finish().code, 125);
  EXPECT_THAT(hard.err(), HasSubstr("raise its hard limit (ulimit -n)"));
}

// In a session of its own nobody could let it go on, so the kernel does not suspend it.
TEST_F(LocalNodesTest, CtrlZWhereNobodyCanResumeChangesNothing) {
  const TempDir directory;
  const std::string file = (directory.path() / "go-on").string();
  for (const bool ignored : {false, true}) {
    Launch launch;
    launch.argv = {"/usr/bin/setsid",
                   drun_path(),
                   "--local-nodes",
                   "2",
                   "sh",
                   "-c",
                   "echo up $RANK.; while [ ! -e " + file + " ]; do sleep 0.02; done"};
    if (ignored) launch.argv.insert(launch.argv.begin(), {"/usr/bin/env", "--ignore-signal=TSTP"});
    DrunProcess drun(launch);
    for (const std::string rank : {"0", "1"})
      ASSERT_TRUE(drun.wait_for_out("up " + rank + ".\n")) << drun.err();
    signal_and_wait(drun, SIGTSTP);
    directory.write("go-on", "");
    EXPECT_EQ(drun.finish().code, 0) << drun.err();
    std::filesystem::remove(file);
  }
}

}  // namespace
}  // namespace drun::test
