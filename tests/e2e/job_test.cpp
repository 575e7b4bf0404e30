// Whole jobs: who gets which rank and environment, how they end, what a restart means.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;

Arguments two_nodes(const ReservedPort& port, const std::string& workers) {
  return {"--nnodes",      "2",           "--nproc-per-node",      workers, "--rdzv-endpoint",
          port.endpoint(), "--rdzv-conf", "keep_alive_interval=20"};
}

// Starts one agent per list of arguments, and waits for all.
std::vector<Finished> run_together(const std::vector<Arguments>& agents,
                                   const Launch& launch = {}) {
  std::vector<std::unique_ptr<DrunProcess>> running;
  for (const auto& arguments : agents)
    running.push_back(std::make_unique<DrunProcess>(arguments, launch));
  std::vector<Finished> result;
  for (auto& process : running)
    result.push_back(process->finish());
  return result;
}

// The lines of all agents' stdout, sorted.
std::vector<std::string> lines_of(const std::vector<Finished>& agents) {
  std::vector<std::string> lines;
  for (const auto& agent : agents) {
    const auto more = split_lines(agent.out);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

void expect_all(const std::vector<Finished>& agents, int code) {
  for (const auto& agent : agents) {
    EXPECT_EQ(agent.code, code) << agent.err;
    EXPECT_THAT(agent.survivors, IsEmpty());
  }
}

// "NAME=value" lines as a map.
std::map<std::string, std::string> variables(const std::string& text) {
  std::map<std::string, std::string> result;
  for (const auto& line : split_lines(text)) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) result[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return result;
}

TEST(JobTest, RunsAProgramFromThePathWithItsOwnArguments) {
  const Finished finished = run_drun({"echo", "--nnodes", "7", "--", "a b", ""});
  EXPECT_EQ(finished.code, 0);
  EXPECT_EQ(finished.out, "--nnodes 7 -- a b \n");
  EXPECT_EQ(finished.err,
            "drun: warning: '--nnodes' comes after the program and is left to it; drun's flags go "
            "before 'echo'\n");
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// A script that calls torchrun, unchanged, under an alias and under a link of that name.
TEST(JobTest, AScriptThatCallsTorchrunRunsUnderDrun) {
  const TempDir folder;
  const std::string script =
      folder.write("start.sh",
                   "torchrun --nproc_per_node=2 sh -c 'echo rank $RANK' &&\n"
                   "torchrun --standalone --nproc_per_node=2 sh -c 'exit 7'\n");
  const std::string aliases =
      folder.write("use-drun", "shopt -s expand_aliases\nalias torchrun='" + drun_path() + "'\n");
  std::filesystem::create_symlink(drun_path(), folder.path() / "torchrun");
  Launch alias;
  alias.argv = {"/bin/bash", script};
  alias.environment = {"BASH_ENV=" + aliases, "PATH=/usr/bin:/bin"};
  Launch link;
  link.argv = {"/bin/sh", script};
  link.environment = {"PATH=" + folder.path().string() + ":/usr/bin:/bin"};
  for (const Launch& launch : {alias, link}) {
    DrunProcess process(launch);
    const Finished finished = process.finish();
    EXPECT_EQ(finished.code, 7) << finished.err;
    EXPECT_THAT(split_lines(finished.out), UnorderedElementsAre("rank 0", "rank 1"));
  }
}

TEST(JobTest, TwoAgentsGiveEachRankOnce) {
  const ReservedPort port;
  const auto agent = two_nodes(port, "4") + Arguments{"sh", "-c", "echo $RANK"};
  const auto finished = run_together({agent, agent});
  expect_all(finished, 0);
  EXPECT_THAT(lines_of(finished), UnorderedElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
}

TEST(JobTest, LocalNodesAreNodes) {
  const Finished finished =
      run_drun({"--local-nodes", "2", "--nproc-per-node", "4", "sh", "-c",
                "echo $RANK $LOCAL_RANK $GROUP_RANK of $WORLD_SIZE $GROUP_WORLD_SIZE"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> expected;
  for (int rank = 0; rank < 8; ++rank) {
    expected.push_back(std::to_string(rank) + " " + std::to_string(rank % 4) + " " +
                       std::to_string(rank / 4) + " of 8 2");
  }
  EXPECT_THAT(split_lines(finished.out), UnorderedElementsAreArray(expected));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(JobTest, NodesMayDifferInTheirNumberOfWorkers) {
  const ReservedPort port;
  const Arguments show = {"sh", "-c",
                          "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE"};
  const auto finished = run_together({two_nodes(port, "1") + show, two_nodes(port, "3") + show});
  expect_all(finished, 0);
  const auto lines = lines_of(finished);
  std::set<std::string> ranks;
  for (const auto& line : lines)
    ranks.insert(line.substr(0, line.find(',')));
  EXPECT_THAT(ranks, UnorderedElementsAre("0 of 4", "1 of 4", "2 of 4", "3 of 4"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), lines.front()), 1);
}

TEST(JobTest, StaticRanksAreTheOnesAskedFor) {
  const ReservedPort port;
  const auto agent = [&](const std::string& rank) {
    return Arguments{"--nnodes",
                     "2",
                     "--nproc-per-node",
                     "2",
                     "--node-rank",
                     rank,
                     "--master-addr",
                     "127.0.0.1",
                     "--master-port",
                     std::to_string(port.number()),
                     "sh",
                     "-c",
                     "echo $GROUP_RANK $RANK $MASTER_ADDR:$MASTER_PORT"};
  };
  const auto finished = run_together({agent("1"), agent("0")});
  expect_all(finished, 0);
  EXPECT_THAT(split_lines(finished[0].out),
              UnorderedElementsAre("1 2 " + port.endpoint(), "1 3 " + port.endpoint()));
  EXPECT_THAT(split_lines(finished[1].out),
              UnorderedElementsAre("0 0 " + port.endpoint(), "0 1 " + port.endpoint()));
}

// One of two nodes that asks c10d for a rank, with a worker that prints which one it has.
Arguments asking(const ReservedPort& port, const std::string& rank) {
  return two_nodes(port, "1") +
         Arguments{"--rdzv-backend", "c10d", "--node-rank", rank, "sh", "-c"} +
         Arguments{"echo asked " + rank + " is $RANK $GROUP_RANK"};
}

// Rank 0 serves MASTER_PORT itself, until the last rank has found it there.
Arguments serves_its_port() {
  const std::string ctl = places::program("drunctl");
  return {"sh", "-c",
          "export DRUN_STORE=$MASTER_ADDR:$MASTER_PORT\n"
          "if [ $RANK = 0 ]; then\n  " +
              places::program("drun-store") +
              " --bind $MASTER_ADDR --port $MASTER_PORT >/dev/null &\n  " + ctl +
              " --retry set served 1 && " + ctl +
              " wait found\n"
              "  kill $!; wait $!; echo served $?, $TORCHELASTIC_USE_AGENT_STORE $MASTER_PORT\n"
              "else\n  " +
              ctl + " --retry wait served && " + ctl + " set found 1; exit 0\nfi"};
}

TEST(JobTest, RankZeroCanBindAStaticMasterPort) {
  const ReservedPort port;
  const std::string number = std::to_string(port.number());
  const auto agent = [&](const std::string& workers, const Arguments& node) {
    return node + Arguments{"--nproc-per-node", workers, "--master-addr",  "127.0.0.1",
                            "--master-port",    number,  "--worker-store", "rank0"} +
           serves_its_port();
  };
  const auto one = run_together({agent("2", {"--nnodes", "1"})});
  expect_all(one, 0);
  EXPECT_EQ(one.front().out, "served 0, False " + number + "\n");
  const auto two = run_together({agent("1", {"--nnodes", "2", "--node-rank", "0"}),
                                 agent("1", {"--nnodes", "2", "--node-rank", "1"})});
  expect_all(two, 0);
  EXPECT_THAT(two.front().out, StartsWith("served 0, False "));
  EXPECT_THAT(two.front().out, Not(HasSubstr(number)));
}

// The address of a service or of a cloud is translated on the way: no machine has it.
TEST(JobTest, NodeRankZeroCarriesTheStoreOfAnAddressThatNoMachineHas) {
  const ReservedPort port;
  const auto agent = [&](const std::string& rank, const std::string& address) {
    return Arguments{"--nnodes",
                     "2",
                     "--node-rank",
                     rank,
                     "--master-addr",
                     address,
                     "--master-port",
                     std::to_string(port.number()),
                     "--rdzv-conf",
                     "keep_alive_interval=20",
                     "sh",
                     "-c",
                     "echo $RANK at $MASTER_ADDR"};
  };
  const auto finished = run_together({agent("0", "192.0.2.1"), agent("1", "127.0.0.1")});
  expect_all(finished, 0);
  EXPECT_THAT(lines_of(finished), UnorderedElementsAre("0 at 192.0.2.1", "1 at 192.0.2.1"));
  EXPECT_THAT(finished.front().err, HasSubstr("192.0.2.1 is no address of this machine"));
}

TEST(JobTest, NodesOfC10dGetTheRanksTheyAskFor) {
  const ReservedPort port;
  const auto finished = run_together({asking(port, "1"), asking(port, "0")});
  expect_all(finished, 0);
  EXPECT_THAT(lines_of(finished), UnorderedElementsAre("asked 0 is 0 0", "asked 1 is 1 1"));
}

// As from a batch script, where $SLURM_NODEID is that of the first node.
TEST(JobTest, NodesOfC10dMayAllBeGivenTheSameRank) {
  const ReservedPort port;
  const auto finished = run_together({asking(port, "0"), asking(port, "0")});
  expect_all(finished, 0);
  EXPECT_THAT(lines_of(finished), UnorderedElementsAre("asked 0 is 0 0", "asked 0 is 1 1"));
}

TEST(JobTest, WorkersGetTorchrunsEnvironment) {
  const ReservedPort port;
  const auto agent =
      two_nodes(port, "1") +
      Arguments{"--rdzv-id", "job77", "--role", "trainer", "--max-restarts", "3", "env"};
  const auto finished = run_together({agent, agent});
  expect_all(finished, 0);
  std::set<std::string> ranks;
  for (const auto& one : finished) {
    auto env = variables(one.out);
    ranks.insert(env["RANK"] + env["GROUP_RANK"] + env["ROLE_RANK"]);
    const std::map<std::string, std::string> expected = {
        {"LOCAL_RANK", "0"},
        {"ROLE_NAME", "trainer"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"WORLD_SIZE", "2"},
        {"GROUP_WORLD_SIZE", "2"},
        {"ROLE_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RUN_ID", "job77"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
    };
    EXPECT_THAT(env, IsSupersetOf(expected));
    EXPECT_EQ(env.count("TORCHELASTIC_ERROR_FILE"), 1U);
    EXPECT_EQ(env.count("OMP_NUM_THREADS"), 0U);  // one worker may use the whole machine
    EXPECT_EQ(env["MASTER_PORT"], variables(finished[0].out)["MASTER_PORT"]);
  }
  EXPECT_THAT(ranks, UnorderedElementsAre("000", "111"));
}

TEST(JobTest, SeveralWorkersShareTheMachinesThreads) {
  const Arguments show = {"--nproc-per-node", "2", "sh", "-c", "echo ${OMP_NUM_THREADS-unset}"};
  EXPECT_EQ(run_drun(show).out, "1\n1\n");
  Launch launch;
  launch.environment = {"OMP_NUM_THREADS=5"};
  EXPECT_EQ(run_drun(show, launch).out, "5\n5\n");
}

TEST(JobTest, WorkersInheritNothingButTheStandardStreams) {
  const Finished finished = run_drun({"sh", "-c", "ls /proc/$$/fd"});
  EXPECT_EQ(finished.out, "0\n1\n2\n");
}

TEST(JobTest, APythonScriptIsRunByTheChosenInterpreter) {
  const TempDir directory;
  const std::string script = directory.write("show.py", "print('never run')\n");
  Launch launch;
  launch.environment = {"PYTHON_EXEC=/bin/echo"};
  EXPECT_EQ(run_drun({script, "--lr", "1"}, launch).out, "-u " + script + " --lr 1\n");
  EXPECT_EQ(run_drun({"-m", "package.train", "x"}, launch).out, "-u -m package.train x\n");
  EXPECT_EQ(run_drun({"--no-python", script}, launch).code, 126);
}

TEST(JobTest, AFlagBeatsItsVariable) {
  Launch launch;
  launch.environment = {"PET_NPROC_PER_NODE=3"};
  EXPECT_THAT(split_lines(run_drun({"sh", "-c", "echo $RANK"}, launch).out), SizeIs(3));
  EXPECT_THAT(split_lines(run_drun({"--nproc_per_node=2", "sh", "-c", "echo $RANK"}, launch).out),
              SizeIs(2));
}

TEST(JobTest, DryRunStartsNothing) {
  const TempDir directory;
  const std::string witness = (directory.path() / "started").string();
  const Finished finished = run_drun({"--dry-run", "--nnodes", "2", "--nproc-per-node", "2",
                                      "--rdzv-endpoint", "10.1.2.3:29500", "touch", witness});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("touch " + witness));
  EXPECT_THAT(finished.out, HasSubstr("LOCAL_RANK=1"));
  EXPECT_FALSE(std::filesystem::exists(witness));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(JobTest, StandaloneJobsDoNotDisturbOneAnother) {
  const Arguments agent = {"--standalone", "--nproc-per-node", "2", "sh",
                           "-c",           "echo $MASTER_PORT"};
  const auto finished = run_together({agent, agent, agent});
  expect_all(finished, 0);
  const auto lines = lines_of(finished);
  EXPECT_THAT(std::set<std::string>(lines.begin(), lines.end()), SizeIs(3));
}

// Scripts start several jobs of one machine with one port, which torchrun does not look at then.
TEST(JobTest, JobsOfOneNodeMayBeGivenTheSameMasterPort) {
  DrunProcess holder({"--standalone", "sh", "-c", "echo port $MASTER_PORT.; exec sleep 1000"});
  ASSERT_TRUE(holder.wait_for_out(".\n")) << holder.err();
  const std::string port = holder.out().substr(5, holder.out().find('.') - 5);
  const ReservedPort meeting;
  for (const Arguments& flags :
       {Arguments{"--standalone"}, Arguments{"--rdzv-endpoint", meeting.endpoint()}}) {
    const Finished finished =
        run_drun(flags + Arguments{"--master-port", port, "sh", "-c", "echo $MASTER_PORT"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(finished.out, Not(HasSubstr(port)));
    EXPECT_THAT(finished.err, HasSubstr("drun: warning: "));
    EXPECT_THAT(finished.err, HasSubstr("Address already in use"));
    EXPECT_THAT(finished.err, HasSubstr("port " + finished.out.substr(0, finished.out.find('\n')) +
                                        " takes its place"));
  }
}

TEST(ExitCodeTest, IsTheWorkersOwn) {
  for (const int code : {1, 2, 7, 100, 124, 125, 126, 127, 255}) {
    const Finished finished =
        run_drun({"--nproc-per-node", "2", "sh", "-c",
                  "[ $RANK = 1 ] && exit " + std::to_string(code) + "; sleep 1000"});
    EXPECT_EQ(finished.code, code);
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
}

TEST(ExitCodeTest, IsAsAShellGivesItForASignal) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT, SIGUSR1}) {
    const Finished finished = run_drun({"sh", "-c", "kill -" + std::to_string(number) + " $$"});
    EXPECT_EQ(finished.code, 128 + number);
  }
}

TEST(ExitCodeTest, IsTheRootCausesOnEveryNode) {
  const ReservedPort port;
  const auto agent =
      two_nodes(port, "2") + Arguments{"sh", "-c", "[ $RANK = 2 ] && exit 7; exec sleep 1000"};
  const auto finished = run_together({agent, agent});
  expect_all(finished, 7);
  for (const auto& one : finished)
    EXPECT_THAT(one.err, HasSubstr("rank 2"));
}

TEST(ExitCodeTest, ASignalToldToOneAgentEndsTheJobOnAll) {
  const ReservedPort port;
  const auto arguments =
      two_nodes(port, "1") + Arguments{"sh", "-c", "echo ready; exec sleep 1000"};
  DrunProcess first(arguments);
  DrunProcess second(arguments);
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  second.signal(SIGTERM);
  expect_all({first.finish(), second.finish()}, 128 + SIGTERM);
}

TEST(RestartTest, StartsAllWorkersAgainWithOneCount) {
  const ReservedPort port;
  const auto agent =
      two_nodes(port, "2") + Arguments{"--max-restarts", "2", "sh", "-c",
                                       "echo $RANK round $TORCHELASTIC_RESTART_COUNT; "
                                       "if [ $TORCHELASTIC_RESTART_COUNT = 2 ]; then exit 0; fi; "
                                       "if [ $RANK = 3 ]; then exit 5; fi; exec sleep 1000"};
  const auto finished = run_together({agent, agent});
  expect_all(finished, 0);
  std::vector<std::string> expected;
  for (const char* round : {"0", "1", "2"}) {
    for (const char* rank : {"0", "1", "2", "3"})
      expected.push_back(std::string(rank) + " round " + round);
  }
  // A worker that is stopped before it has printed is no failure of drun's.
  EXPECT_THAT(expected, IsSupersetOf(lines_of(finished)));
  EXPECT_THAT(lines_of(finished), IsSupersetOf({"3 round 0", "3 round 1", "0 round 2", "1 round 2",
                                                "2 round 2", "3 round 2"}));
}

TEST(RestartTest, EndsWithTheFailureWhenTheBudgetIsSpent) {
  const TempDir directory;
  const Finished finished =
      run_drun({"--nproc-per-node", "2", "--max-restarts", "2", "sh", "-c",
                "echo x >> " + (directory.path() / "starts").string() + "; exit 9"});
  EXPECT_EQ(finished.code, 9);
  EXPECT_THAT(finished.survivors, IsEmpty());
  // Three rounds of two; in each, one may be stopped before it has written.
  const auto starts = split_lines(read_file(directory.path() / "starts"));
  EXPECT_GE(starts.size(), 3U);
  EXPECT_LE(starts.size(), 6U);
}

TEST(RestartTest, EveryRoundHasAnEmptyWorkersStore) {
  const ReservedPort port;
  const auto agent =
      two_nodes(port, "2") + Arguments{"--max-restarts", "1", places::program("store_worker")};
  const auto finished = run_together({agent, agent});
  expect_all(finished, 0);
  EXPECT_THAT(lines_of(finished), SizeIs(8)) << finished[0].err << finished[1].err;
  EXPECT_THAT(lines_of(finished), Each(HasSubstr("empty at first")));
}

}  // namespace
}  // namespace drun::test
