// Membership that changes: nodes that come, die, fall silent, finish first, and who gets which
// rank.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "support/drun_process.hpp"
#include "support/process_state.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;
using Clock = std::chrono::steady_clock;

// An elastic job whose workers say their round, rank, world and restart count, and stay.
class ElasticTest : public AgentsOfAJob {
 protected:
  // Only a connection that ends makes a node lost, unless `keep_alive` is short.
  Arguments elastic(
      const std::string& nodes, const Arguments& more = {},
      const std::string& keep_alive = "keep_alive_interval=60,keep_alive_max_attempt=10") const {
    return Arguments{"--nnodes",       nodes,         "--rdzv-endpoint",
                     port_.endpoint(), "--rdzv-conf", "last_call_timeout=0.3," + keep_alive} +
           more + telling_workers();
  }
  // The first agents, one after the other, so that the first hosts the store.
  void start_nodes(const Arguments& arguments, std::size_t nodes) {
    for (std::size_t i = 0; i < nodes; ++i) {
      start(arguments);
      ASSERT_TRUE(says(i, "round ")) << agent(i).err();
    }
    for (std::size_t i = 0; i < nodes; ++i)
      ASSERT_TRUE(says(i, " of " + std::to_string(nodes) + " ")) << agent(i).err();
  }
  void expect_gone(std::size_t number, const std::string& said) {
    const Finished finished = agent(number).finish();
    EXPECT_EQ(finished.code, 128 + SIGTERM) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("drun: stopped: received SIGTERM" + said));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }

  ReservedPort port_;
};

TEST_F(ElasticTest, ANodeThatJoinsStartsANewRoundThatCostsNoRestart) {
  start(elastic("1:2"));
  ASSERT_TRUE(says(0, "round 1 rank 0 of 1 restarts 0.")) << agent(0).err();
  start(elastic("1:2"));
  EXPECT_TRUE(says(0, "round 2 rank 0 of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(1, "round 2 rank 1 of 2 restarts 0.")) << agent(1).err();
  stop_all(1);
}

TEST_F(ElasticTest, WithResizeAtRestartItWaitsForTheNextOne) {
  const Arguments more = {"--resize", "restart", "--max-restarts", "1"};
  start(elastic("1:2", more));
  ASSERT_TRUE(says(0, "round 1 rank 0 of 1 restarts 0.")) << agent(0).err();
  start(elastic("1:2", more));
  ASSERT_TRUE(agent(1).wait_for_err("spare: the job runs with 1 of 1 to 2 nodes"))
      << agent(1).err();
  EXPECT_EQ(agent(0).out(), "round 1 rank 0 of 1 restarts 0.\n");
  const pid_t worker = agent(0).wait_for_pid_with("RANK=0");
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  EXPECT_TRUE(says(0, "round 2 rank 0 of 2 restarts 1.")) << agent(0).err();
  EXPECT_TRUE(says(1, "round 2 rank 1 of 2 restarts 1.")) << agent(1).err();
  stop_all(0);
}

TEST_F(ElasticTest, TheSurvivorsOfAKilledAgentGoOnWithinSeconds) {
  for (int i = 0; i < 3; ++i) {
    start(elastic("1:3"));
    ASSERT_TRUE(says(static_cast<std::size_t>(i), "round ")) << agent(0).err();
  }
  ASSERT_TRUE(says(0, "of 3 restarts 0.")) << agent(0).err();
  ASSERT_TRUE(says(1, "of 3 restarts 0.")) << agent(1).err();
  ASSERT_TRUE(says(2, "of 3 restarts 0.")) << agent(2).err();
  agent(2).signal(SIGKILL);
  const auto killed = Clock::now();
  EXPECT_TRUE(says(0, "rank 0 of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(1, "rank 1 of 2 restarts 0.")) << agent(1).err();
  const std::chrono::duration<double> took = Clock::now() - killed;
  RecordProperty("seconds_to_the_new_round", std::to_string(took.count()));
  EXPECT_TRUE(agent(0).wait_for_err("(group rank 2) is gone: its agent has died (killed, or crash"))
      << agent(0).err();
  EXPECT_LT(took.count(), 45);  // about one second where the machine is idle; silence takes 600
  EXPECT_TRUE(agent(2).survivors_gone(kPatience));
  EXPECT_TRUE(agent(2).wait());
  stop_all(1);
}

TEST_F(ElasticTest, ALossBeyondThoseAllowedEndsTheJob) {
  const Arguments arguments = elastic("1:3", {"--max-losses", "1"});
  ASSERT_NO_FATAL_FAILURE(start_nodes(arguments, 3));
  agent(2).signal(SIGTERM);
  EXPECT_TRUE(says(0, "round 4 rank 0 of 2 restarts 0.")) << agent(0).err();
  expect_gone(2, " on ");
  agent(1).signal(SIGKILL);
  EXPECT_TRUE(says(0, "round 5 rank 0 of 1 restarts 0.")) << agent(0).err();
  start(arguments);
  EXPECT_TRUE(says(3, "round 6 rank 1 of 2 restarts 0.")) << agent(3).err();
  agent(3).signal(SIGKILL);
  const Finished finished = agent(0).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr(" (group rank 1) is gone: its agent has died (killed, or "
                                      "crashed); nodes were lost in 2 rounds, "
                                      "--max-losses allows 1\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

// A node that comes and goes in a loop: no worker fails, and yet the job gets nowhere.
TEST_F(ElasticTest, RoundsThatAreTooShortSpendTheRestarts) {
  const Arguments arguments = elastic("1:2", {"--min-runtime", "10m", "--max-restarts", "1"});
  ASSERT_NO_FATAL_FAILURE(start_nodes(arguments, 2));
  ASSERT_TRUE(says(0, "round 2 rank 0 of 2 restarts 0.")) << "newcomers cost nothing";
  agent(1).signal(SIGKILL);
  EXPECT_TRUE(says(0, "round 3 rank 0 of 1 restarts 1.")) << agent(0).err();
  start(arguments);
  EXPECT_TRUE(says(0, "round 4 rank 0 of 2 restarts 1.")) << agent(0).err();
  agent(2).signal(SIGKILL);
  const Finished finished = agent(0).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err,
              HasSubstr(" (group rank 1) is gone: its agent has died (killed, or crashed), and "
                        "round 4 had run for less than --min-runtime "
                        "600 s; that spends a restart, and --max-restarts 1 leaves none\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(ElasticTest, ANodeThatIsToldToGoLeavesAndTheJobGoesOn) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(elastic("1:3"), 3));
  agent(2).signal(SIGTERM);
  EXPECT_TRUE(says(0, "round 4 rank 0 of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(1, "round 4 rank 1 of 2 restarts 0.")) << agent(1).err();
  expect_gone(2, " on ");
  EXPECT_THAT(agent(2).err(), HasSubstr("; this node leaves the job\n"));
  EXPECT_THAT(agent(1).err(), HasSubstr(" (group rank 2) leaves the job: received SIGTERM on "));
  stop_all(1);
}

// No worse than the death of the agent itself.
TEST_F(ElasticTest, ANodeThatLosesItsGuardianLeavesAndTheJobGoesOn) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(elastic("1:3"), 3));
  ::kill(helper_of(agent(2), "drun-guardian"), SIGKILL);
  const std::string lost = "drun's guardian process ended (killed by SIGKILL)";
  EXPECT_TRUE(says(0, "round 4 rank 0 of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(1, "round 4 rank 1 of 2 restarts 0.")) << agent(1).err();
  const Finished finished = agent(2).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("drun: error: " + lost + "; this node leaves the job\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
  EXPECT_THAT(agent(1).err(), HasSubstr(" (group rank 2) leaves the job: " + lost));
  stop_all(1);
}

// Without successors the job ends with its store.
TEST_F(ElasticTest, ANodeWithTheStoreCannotGoWithoutTheJob) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(elastic("1:2", {}, "successors=0"), 2));
  agent(0).signal(SIGTERM);
  expect_gone(0, " on ");
  expect_gone(1, " on ");
  EXPECT_THAT(agent(0).err(), testing::Not(HasSubstr("leaves the job")));
}

TEST_F(ElasticTest, AJobWhoseNodesAreAllToldToGoEnds) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(elastic("1:3"), 3));
  const std::string before = agent(0).out();
  agent(2).signal(SIGTERM);
  ASSERT_TRUE(agent(0).wait_for_err("leaves the job")) << agent(0).err();
  agent(1).signal(SIGTERM);
  agent(0).signal(SIGTERM);
  for (const std::size_t number : {0U, 1U, 2U})
    expect_gone(number, " on ");
  EXPECT_EQ(agent(0).out(), before) << "no round in between";
}

TEST_F(ElasticTest, AFlagSaysWhatSigtermDoes) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(elastic("1:2", {"--on-sigterm", "stop"}), 2));
  agent(1).signal(SIGTERM);
  expect_gone(0, " on ");
  expect_gone(1, " on ");
}

TEST_F(ElasticTest, ANodeOfAFixedJobMayBeReplaced) {
  const Arguments arguments = elastic("2", {"--on-sigterm", "leave"});
  start(arguments);
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 nodes")) << agent(0).err();
  start(arguments);
  ASSERT_TRUE(says(1, "round 1 rank 1 of 2")) << agent(1).err();
  agent(1).signal(SIGTERM);
  expect_gone(1, " on ");
  start(arguments);
  EXPECT_TRUE(says(2, "round 2 rank 1 of 2 restarts 0.")) << agent(2).err();
  stop_all(2);
}

TEST_F(ElasticTest, ASpareTakesThePlaceAndTheRankOfADeadNode) {
  start(elastic("2"));
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 nodes")) << agent(0).err();
  start(elastic("2"));
  ASSERT_TRUE(says(0, "rank 0 of 2")) << agent(0).err();
  ASSERT_TRUE(says(1, "rank 1 of 2")) << agent(1).err();
  start(elastic("2"));
  ASSERT_TRUE(agent(2).wait_for_err("spare: the job runs with 2 of 2 nodes")) << agent(2).err();
  agent(1).signal(SIGKILL);
  EXPECT_TRUE(agent(1).wait());
  EXPECT_TRUE(says(0, "round 2 rank 0 of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(2, "round 2 rank 1 of 2 restarts 0.")) << agent(2).err();
  for (const std::size_t i : {0U, 2U})
    EXPECT_TRUE(agent(i).wait_for_err(" is taken in from round 2 on, as group rank 1\n")) << i;
  stop_all(2);
}

TEST_F(ElasticTest, AJobInStepsShrinksAndGrowsByWholeSteps) {
  const Arguments arguments = elastic("2:4:2");
  start(arguments);
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 to 4 nodes, in steps of 2")) << agent(0).err();
  start(arguments);
  ASSERT_TRUE(says(0, "round 1 rank 0 of 2 restarts 0.")) << agent(0).err();
  start(arguments);
  ASSERT_TRUE(
      agent(2).wait_for_err("spare: the job runs with 2 of 2 to 4 nodes, in steps of 2, "
                            "this one waits until a whole step is there"))
      << agent(2).err();
  start(arguments);
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_TRUE(says(i, "of 4 restarts 0.")) << agent(i).err();
  // Three are left: one is a spare until another comes.
  agent(1).signal(SIGKILL);
  EXPECT_TRUE(agent(1).wait());
  EXPECT_TRUE(says(0, "round 3 rank 0 of 2 restarts 0.")) << agent(0).err();
  start(arguments);
  EXPECT_TRUE(says(4, "of 4 restarts 0.")) << agent(4).err();
  EXPECT_THAT(agent(0).out(), Not(HasSubstr("of 3 ")));
  stop_all(0);
}

TEST_F(ElasticTest, RanksFollowTheNetwork) {
  const auto start_below = [&](const std::string& leaf) {
    Launch launch;
    launch.environment = {"SLURM_TOPOLOGY_ADDR=" + leaf + ".node",
                          "SLURM_TOPOLOGY_ADDR_PATTERN=switch.node"};
    agents_.push_back(
        std::make_unique<DrunProcess>(elastic("2:3", {"--rank-order", "topology"}), launch));
  };
  start_below("leaf2");
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 to 3 nodes")) << agent(0).err();
  start_below("leaf10");
  ASSERT_TRUE(says(0, "round 1 rank 0 of 2 ")) << agent(0).err();
  ASSERT_TRUE(says(1, "round 1 rank 1 of 2 ")) << agent(1).err();
  // One that comes later stands where its neighbours are; the others move.
  start_below("leaf1");
  EXPECT_TRUE(says(2, "round 2 rank 0 of 3 ")) << agent(2).err();
  EXPECT_TRUE(says(0, "round 2 rank 1 of 3 ")) << agent(0).err();
  EXPECT_TRUE(says(1, "round 2 rank 2 of 3 ")) << agent(1).err();
  stop_all(0);
}

TEST_F(ElasticTest, AStoppedAgentThatComesBackLateJoinsAnew) {
  const std::string keep_alive = "keep_alive_interval=5,keep_alive_max_attempt=2";
  start(elastic("1:2", {}, keep_alive));
  ASSERT_TRUE(says(0, "round 1 ")) << agent(0).err();
  start(elastic("1:2", {}, keep_alive));
  ASSERT_TRUE(says(1, "rank 1 of 2")) << agent(1).err();
  const pid_t worker = agent(1).wait_for_pid_with("RANK=1");
  ASSERT_GT(worker, 0);
  agent(1).signal(SIGSTOP);
  EXPECT_TRUE(says(0, "round 3 rank 0 of 1 restarts 0.")) << agent(0).err();
  EXPECT_NE(::kill(worker, 0), 0) << "two rounds at once";
  agent(1).signal(SIGCONT);
  EXPECT_TRUE(says(1, "round 4 rank 1 of 2 restarts 0.")) << agent(1).err();
  EXPECT_TRUE(says(0, "round 4 rank 0 of 2 restarts 0.")) << agent(0).err();
  stop_all(0);
  EXPECT_THAT(lines_but_waiting(agent(1).err()), testing::SizeIs(testing::Le(6U)))
      << agent(1).err();
}

TEST_F(ElasticTest, AskedForRanksAreGivenAndTheMapIsLoggedOnce) {
  for (const char* rank : {"2", "0", "1"})
    start(elastic("3", {"-v", "--node-rank", rank}));
  EXPECT_TRUE(says(0, "rank 2 of 3")) << agent(0).err();
  EXPECT_TRUE(says(1, "rank 0 of 3")) << agent(1).err();
  EXPECT_TRUE(says(2, "rank 1 of 3")) << agent(2).err();
  stop_all(2);
  std::string all;
  for (auto& each : agents_)
    all += each->err();
  std::size_t maps = 0;
  for (const auto& line : split_lines(all))
    maps += line.find("round 1: 3 nodes, 3 ranks: ") != std::string::npos ? 1U : 0U;
  EXPECT_EQ(maps, 1U) << all;
}

TEST(RejoinTest, ANodeThatHasFinishedTakesPartAgainWhenAPeerMustRestart) {
  const ReservedPort port;
  const TempDir directory;
  const std::string done = (directory.path() / "done").string();
  // Rank 0 finishes at once, in each round; rank 1 fails after that, the first time.
  const std::string script =
      "if [ $RANK = 0 ]; then echo finished $TORCHELASTIC_RESTART_COUNT; touch " + done +
      "; exit 0; fi; until [ -e " + done +
      " ]; do sleep 0.02; done; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3";
  const Arguments agent = {
      "--nnodes", "2",   "--rdzv-endpoint", port.endpoint(), "--max-restarts", "1", "sh",
      "-c",       script};
  DrunProcess first(agent);
  DrunProcess second(agent);
  const Finished a = first.finish();
  const Finished b = second.finish();
  EXPECT_EQ(a.code, 0) << a.err;
  EXPECT_EQ(b.code, 0) << b.err;
  EXPECT_THAT(split_lines(a.out + b.out), UnorderedElementsAre("finished 0", "finished 1"));
  EXPECT_THAT(a.survivors, IsEmpty());
  EXPECT_THAT(b.survivors, IsEmpty());
}

TEST(FailureTest, AFailureEndsNodesWhoseWorkersDoNotNotice) {
  const ReservedPort port;
  const Arguments agent = {"--nnodes",
                           "3",
                           "--rdzv-endpoint",
                           port.endpoint(),
                           "sh",
                           "-c",
                           "[ $RANK = 2 ] && exit 9; exec sleep 1000"};
  std::vector<std::unique_ptr<DrunProcess>> agents;
  const auto begin = Clock::now();
  for (int i = 0; i < 3; ++i)
    agents.push_back(std::make_unique<DrunProcess>(agent));
  for (auto& each : agents) {
    const Finished finished = each->finish();
    EXPECT_EQ(finished.code, 9) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("rank 2"));
    EXPECT_THAT(finished.survivors, IsEmpty());
  }
  EXPECT_LT(Clock::now() - begin, kPatience);
}

}  // namespace
}  // namespace drun::test
