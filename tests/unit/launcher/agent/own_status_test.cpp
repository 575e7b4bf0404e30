#include "launcher/agent/own_status.hpp"

#include <unistd.h>

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "support/agent_parts.hpp"
#include "support/group_rig.hpp"

namespace drun::launcher {
namespace {

using status::Phase;
using test::place_of;

const std::string kHost = "node7";

Options two_workers() {
  Options options = test::lone_job();
  options.nproc_per_node = 2;
  return options;
}

class OwnStatusTest : public testing::Test {
 protected:
  OwnStatusTest() { parts_.workers.listen(); }
  [[nodiscard]] status::AgentStatus own() const {
    return own_status(parts_.options, kHost, parts_.workers, parts_.status, driver_);
  }
  void begin_round() {
    parts_.workers.start(place_of(1, 2, 3));
    parts_.workers.on_time();
  }
  void spawn(std::size_t worker) {
    parts_.runner.report(
        process::Spawned{parts_.runner.requests.at(worker).id, static_cast<pid_t>(101 + worker)});
    parts_.turn();
  }

  test::AgentParts parts_{two_workers()};
  ParticipantDriver driver_{
      {parts_.options, kHost, parts_.status, parts_.workers, parts_.backend, parts_.events},
      [](const rendezvous::Outcome&) {}};
};

TEST_F(OwnStatusTest, BeforeARoundItSaysWhatIsWaitedFor) {
  EXPECT_EQ(own().phase, Phase::Searching);
  EXPECT_EQ(own().job, "own");
  EXPECT_EQ(own().host, kHost);
  EXPECT_EQ(own().pid, ::getpid());
  EXPECT_EQ(own().round, 0);
  driver_.join({});
  parts_.status.waiting("1 of 2 nodes", StatusReporter::Time());
  EXPECT_EQ(own().phase, Phase::Gathering);
  EXPECT_EQ(own().waiting, "1 of 2 nodes");
  parts_.status.waiting("spare: not needed", StatusReporter::Time(), true);
  EXPECT_EQ(own().phase, Phase::Spare);
}

TEST_F(OwnStatusTest, InARoundItSaysItsPlace) {
  driver_.join({});
  parts_.status.waiting("spare: not needed", StatusReporter::Time(), true);
  begin_round();
  EXPECT_EQ(own().phase, Phase::Starting);
  spawn(0);
  EXPECT_EQ(own().phase, Phase::Starting) << "one is missing";
  spawn(1);
  const auto running = own();
  EXPECT_EQ(running.phase, Phase::Running);
  EXPECT_EQ(running.round, 3);
  EXPECT_EQ(running.nodes, 2);
  EXPECT_EQ(running.group_rank, 1);
  EXPECT_EQ(running.first_rank, 2);
  EXPECT_EQ(running.workers, 2);
  EXPECT_EQ(running.world_size, 4);
  rendezvous::StopAction stop;
  stop.reason = "a node left";
  parts_.workers.stop(stop);
  EXPECT_EQ(own().phase, Phase::Stopping);
  EXPECT_EQ(own().round, 3);
  parts_.runner.report(process::Stopped{});
  parts_.turn();
  EXPECT_EQ(own().phase, Phase::Spare);
  EXPECT_EQ(own().round, 0) << "the numbers of the last one say nothing";
}

TEST_F(OwnStatusTest, WhoseJobIsOverLeaves) {
  begin_round();
  driver_.refuse_job("no such folder", std::chrono::steady_clock::now());
  EXPECT_TRUE(driver_.finished());
  EXPECT_EQ(own().phase, Phase::Leaving);
}

TEST_F(OwnStatusTest, OnlyNodesThatMeetHaveAPlaceToMeet) {
  parts_.options.endpoint = {"node0", 29'400};
  EXPECT_EQ(own().endpoint, "");
  parts_.options.max_nodes = 2;
  EXPECT_EQ(own().endpoint, "node0:29400");
}

}  // namespace
}  // namespace drun::launcher
