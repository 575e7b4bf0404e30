// The node with the store dies, and another takes its place.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "base/random_bytes.hpp"
#include "store_process.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"
#include "support/places.hpp"
#include "support/process_state.hpp"

namespace drun::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Clock = std::chrono::steady_clock;

class SuccessionTest : public AgentsOfAJob {
 protected:
  // With such a lease only the proof of a node's death lets the others go on in time.
  Arguments job(
      const std::string& nodes, const Arguments& more = {},
      const std::string& conf = "keep_alive_interval=60,keep_alive_max_attempt=10") const {
    return Arguments{"--nnodes",        nodes,
                     "--rdzv-endpoint", port_.endpoint(),
                     "--rdzv-conf",     "last_call_timeout=0.3,successors=3," + conf} +
           more + telling_workers();
  }
  // The first one hosts the store. Of a job of MIN:MAX nodes, MAX.
  void start_nodes(const Arguments& arguments, std::size_t nodes) {
    for (std::size_t i = 0; i < nodes; ++i) {
      start(arguments);
      if (i > 0) continue;
      const bool alone = std::find(arguments.begin(), arguments.end(), "1:2") != arguments.end();
      ASSERT_TRUE(alone ? says(0, "round 1 ") : agent(0).wait_for_err("waiting")) << agent(0).err();
    }
    const std::string world = " of " + std::to_string(nodes) + " restarts 0.";
    for (std::size_t i = 0; i < nodes; ++i)
      ASSERT_TRUE(says(i, world)) << agent(i).err();
    // Not always the first: of a busy machine one may come late.
    const std::string told = agent(0).out().substr(0, agent(0).out().find(world));
    round_ = std::stoi(told.substr(told.rfind("round ") + 6));
  }
  // Of its worker in that round: two agents of one machine may arrive in either order.
  int rank_of(std::size_t number, int round) {
    const std::string text = "round " + std::to_string(round) + " rank ";
    EXPECT_TRUE(says(number, text)) << agent(number).err();
    const std::string out = agent(number).out();
    const std::size_t at = out.find(text);
    return at == std::string::npos ? -1 : std::stoi(out.substr(at + text.size()));
  }
  void kill_agent(std::size_t number) {
    agent(number).signal(SIGKILL);
    killed_ = Clock::now();
  }
  // As when a container ends: nobody is left who could say so.
  void kill_with_helpers(std::size_t number) {
    const pid_t keeper = helper_of(agent(number), "job-keeper");
    const pid_t guardian = helper_of(agent(number), "drun-guardian");
    ASSERT_GT(keeper, 0);
    ASSERT_GT(guardian, 0);
    agent(number).signal(SIGSTOP);
    ::kill(keeper, SIGKILL);
    ::kill(guardian, SIGKILL);
    kill_agent(number);
  }
  void expect_nothing_left(std::size_t number) {
    EXPECT_TRUE(agent(number).survivors_gone(kPatience));
    EXPECT_TRUE(agent(number).wait());
  }
  void record(const std::string& what) const {
    const std::chrono::duration<double> took = Clock::now() - killed_;
    RecordProperty(what, std::to_string(took.count()));
    EXPECT_LT(took.count(), 60);  // without a proof of death it would take a lease: 80 s or more
  }

  ReservedPort port_;
  int round_ = 0;  // the first one with all nodes
  Clock::time_point killed_;
};

TEST_F(SuccessionTest, TheOthersGoOnWithoutTheHost) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("2:3"), 3));
  kill_agent(0);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(rank_of(i, round_ + 1), rank_of(i, round_) - 1);
  }
  EXPECT_THAT(agent(1).err() + agent(2).err(), AllOf(HasSubstr(" (group rank 0) is gone"),
                                                     Not(HasSubstr("the node (group rank 0)"))));
  record("seconds_to_the_new_round");
  expect_nothing_left(0);
  stop_all(2);
}

TEST_F(SuccessionTest, WhileTheHostIsMissingItIsNamed) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("3"), 3));
  kill_agent(0);
  const std::string lost = " (group rank 0) was lost in round " + std::to_string(round_);
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(agent(i).wait_for_err(lost)) << agent(i).err();
  EXPECT_THAT(agent(1).err() + agent(2).err(), Not(HasSubstr("a node" + lost)));
  expect_nothing_left(0);
  stop_all(1);
}

TEST_F(SuccessionTest, ASpareTakesTheHostsPlace) {
  // A spare takes a place as soon as its heartbeat says that most nodes know of the round.
  const Arguments arguments = job("3", {}, "keep_alive_interval=20,keep_alive_max_attempt=3");
  ASSERT_NO_FATAL_FAILURE(start_nodes(arguments, 3));
  start(arguments);
  ASSERT_TRUE(agent(3).wait_for_err("spare: ")) << agent(3).err();
  kill_agent(0);
  EXPECT_TRUE(says(3, "round 2 rank 0 of 3 restarts 0.")) << agent(3).err();
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_EQ(rank_of(i, round_ + 1), rank_of(i, round_));
  record("seconds_to_the_new_round");
  expect_nothing_left(0);
  stop_all(3);
}

TEST_F(SuccessionTest, TwoHostsInARowMayDie) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("2:4"), 4));
  kill_agent(0);
  for (std::size_t i = 1; i < 4; ++i)
    ASSERT_GE(rank_of(i, round_ + 1), 0);
  record("seconds_to_the_first_round");
  // Its rank 1 hosts the store now, and has rank 0.
  const int next = round_ + 1;
  const std::size_t second = rank_of(1, next) == 0 ? 1 : rank_of(2, next) == 0 ? 2 : 3;
  ASSERT_TRUE(agent(second).wait_for_err("on this node")) << agent(second).err();
  kill_agent(second);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_TRUE(i == second || says(i, " of 2 restarts 0.")) << agent(i).err();
  record("seconds_to_the_second_round");
  expect_nothing_left(0);
  expect_nothing_left(second);
  stop_all(second == 3 ? 2 : 3);
}

// A pod with the store is deleted, or its machine is taken away.
TEST_F(SuccessionTest, AHostThatIsToldToGoLeavesTheOthers) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("2:3"), 3));
  agent(0).signal(SIGTERM);
  killed_ = Clock::now();
  const Finished gone = agent(0).finish();
  EXPECT_EQ(gone.code, 128 + SIGTERM) << gone.err;
  EXPECT_THAT(gone.err, HasSubstr("this node leaves the job"));
  EXPECT_THAT(gone.survivors, IsEmpty());
  for (std::size_t i = 1; i < 3; ++i)
    EXPECT_TRUE(says(i, " of 2 restarts 0.")) << agent(i).err();
  record("seconds_to_the_new_round");
  stop_all(1);
}

TEST_F(SuccessionTest, IfAllAreToldToGoTheJobEnds) {
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("2:3"), 3));
  for (std::size_t i = 0; i < 3; ++i)
    agent(i).signal(SIGTERM);
  for (std::size_t i = 0; i < 3; ++i) {
    const Finished ended = agent(i).finish();
    EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
    EXPECT_THAT(ended.out, Not(HasSubstr("round " + std::to_string(round_ + 1))));
    EXPECT_THAT(ended.survivors, IsEmpty());
  }
}

// And what cost them; drunctl finds the store that a node of this host has gone to.
TEST_F(SuccessionTest, TheSpentRestartsAreKept) {
  const std::string id = "succession-" + random_name(12);
  ASSERT_NO_FATAL_FAILURE(start_nodes(job("2:3", {"--max-restarts", "2", "--rdzv-id", id}), 3));
  const pid_t worker = agent(2).wait_for_pid_with("WORLD_SIZE=3");
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(says(i, " of 3 restarts 1.")) << agent(i).err();
  kill_agent(0);
  EXPECT_TRUE(says(1, " of 2 restarts 1.")) << agent(1).err();
  EXPECT_TRUE(says(2, " of 2 restarts 1.")) << agent(2).err();
  expect_nothing_left(0);
  Launch launch;
  launch.argv = {places::program("drunctl"), "history", id};
  const Finished history = DrunProcess(launch).finish();
  EXPECT_EQ(history.code, 0) << history.err;
  EXPECT_THAT(history.out, ContainsRegex("round [0-9]+: 3 nodes.*SIGKILL.*restart 1\n"));
  EXPECT_THAT(history.out, ContainsRegex("round [0-9]+: 3 nodes.* is gone"));
  EXPECT_THAT(history.out, ContainsRegex("round [0-9]+: 2 nodes"));
  stop_all(1);
}

// The keep-alive limit is waited for, since who runs the store may start it again.
class ForeignStoreTest : public SuccessionTest {
 protected:
  void start_workers() {
    first_ = agents_.size();
    for (std::size_t i = 0; i < 3; ++i)
      start(job_of("this", "is_host=0,"));
    for (std::size_t i = first_; i < agents_.size(); ++i) {
      ASSERT_TRUE(says(i, "round 1 ")) << agent(i).err();
      workers_.push_back(agent(i).wait_for_pid_with("GROUP_WORLD_SIZE=3"));
    }
  }
  void expect_that_no_worker_is_touched() {
    for (std::size_t i = first_; i < agents_.size(); ++i)
      EXPECT_TRUE(agent(i).wait_for_err("the store is now at ")) << agent(i).err();
    for (const pid_t worker : workers_)
      EXPECT_EQ(state_of(worker), 'S');
    stop_all(first_ + 1);
    for (std::size_t i = first_; i < agents_.size(); ++i)
      EXPECT_THAT(agent(i).out(), Not(HasSubstr("round 2")));
  }
  Arguments job_of(const std::string& id, const std::string& conf) const {
    return job("3", {"--rdzv-id", id}, conf + "keep_alive_interval=4,keep_alive_max_attempt=3");
  }

  std::size_t first_ = 0;  // of the agents whose store it is not
  std::vector<pid_t> workers_;
};

TEST_F(ForeignStoreTest, NoWorkerIsTouchedIfTheHostIsNotInTheRound) {
  start(job_of("other", "is_host=1,"));
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  ASSERT_NO_FATAL_FAILURE(start_workers());
  kill_agent(0);
  expect_nothing_left(0);
  expect_that_no_worker_is_touched();
}

TEST_F(ForeignStoreTest, NoWorkerIsTouchedIfADrunStoreDies) {
  Store store(std::to_string(port_.number()));
  ASSERT_NO_FATAL_FAILURE(start_workers());
  store.stop();
  expect_that_no_worker_is_touched();
}

// It was silent for longer than the keep-alive limit, and knows nothing of where the job has gone.
TEST_F(ForeignStoreTest, WhoAsksTheStoreThatTheJobHasLeftHearsHowItIs) {
  Store store(std::to_string(port_.number()));
  ASSERT_NO_FATAL_FAILURE(start_workers());
  store.signal(SIGSTOP);
  for (std::size_t i = first_; i < agents_.size(); ++i)
    ASSERT_TRUE(agent(i).wait_for_err("the store is now at ")) << agent(i).err();
  store.signal(SIGCONT);
  const auto ask = [this](const Arguments& question) {
    Launch launch;
    launch.argv = Arguments{places::program("drunctl"), "--endpoint", port_.endpoint()} + question;
    return DrunProcess(launch).finish();
  };
  // Until their leases are over it takes them for silent.
  ASSERT_TRUE(eventually([&] { return ask({"jobs"}).out.find(" 0 agents") != std::string::npos; }));
  const Finished status = ask({"status", "this"});
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_THAT(status.out, HasSubstr("job this: running, round 1")) << status.err;
  Launch live;
  live.argv = {
      places::program("drunctl"), "--endpoint", port_.endpoint(), "status", "this", "--watch"};
  DrunProcess watching(live);
  EXPECT_TRUE(watching.wait_for_out("job this: running, round 1")) << watching.err();
  watching.signal(SIGTERM);
  EXPECT_TRUE(watching.wait());
  expect_that_no_worker_is_touched();
}

// The dead host's helpers say that it is gone, so the other needs no majority.
TEST_F(SuccessionTest, TheLastOfTwoGoesOnIfTheHostIsProvenDead) {
  ASSERT_NO_FATAL_FAILURE(
      start_nodes(job("1:2", {}, "keep_alive_interval=20,keep_alive_max_attempt=3"), 2));
  kill_agent(0);
  EXPECT_TRUE(says(1, "rank 0 of 1 restarts 0.")) << agent(1).err();
  record("seconds_to_the_new_round");
  expect_nothing_left(0);
  stop_all(1);
}

TEST_F(SuccessionTest, TheLastOfTwoEndsAndSaysWhatHelps) {
  ASSERT_NO_FATAL_FAILURE(
      start_nodes(job("1:2", {}, "keep_alive_interval=1,keep_alive_max_attempt=1"), 2));
  ASSERT_NO_FATAL_FAILURE(kill_with_helpers(0));
  const Finished finished = agent(1).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("lost the store at " + port_.endpoint()));
  EXPECT_THAT(finished.err, HasSubstr("no majority of the round's 2 nodes"));
  EXPECT_THAT(finished.err, HasSubstr("--rdzv-conf quorum=1"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(SuccessionTest, WithQuorumOneTheLastGoesOn) {
  ASSERT_NO_FATAL_FAILURE(
      start_nodes(job("1:2", {}, "keep_alive_interval=1,keep_alive_max_attempt=1,quorum=1"), 2));
  ASSERT_NO_FATAL_FAILURE(kill_with_helpers(0));
  EXPECT_TRUE(says(1, "rank 0 of 1 restarts 0.")) << agent(1).err();
  EXPECT_TRUE(agent(0).wait());
  stop_all(1);
}

TEST_F(SuccessionTest, AllNodesMustAgreeOnIt) {
  start(job("2"));
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  start({"--nnodes", "2", "--rdzv-endpoint", port_.endpoint(), "--rdzv-conf", "successors=1",
         "true"});
  const Finished finished = agent(1).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err,
              HasSubstr("has --rdzv-conf successors=1; the job has --rdzv-conf successors=3"));
  stop_all(0);
}

}  // namespace
}  // namespace drun::test
