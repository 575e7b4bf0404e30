// A job with several endpoints, on ports of this machine: it begins where most of their agents
// meet, and whoever comes later finds it, wherever its store has gone.
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "store/client/control_query.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store_process.hpp"
#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class EndpointsTest : public AgentsOfAJob {
 protected:
  std::string list(std::size_t count = 3) const {
    std::string result;
    for (std::size_t i = 0; i < count; ++i)
      result += (i == 0 ? "" : ",") + ports_[i].endpoint();
    return result;
  }
  // On one machine each agent takes the first endpoint that is free.
  Arguments job(const std::string& nodes, const std::string& endpoints,
                const std::string& conf = "last_call_timeout=0.3") const {
    return Arguments{"--nnodes", nodes, "--rdzv-endpoint", endpoints, "--rdzv-conf", conf} +
           telling_workers();
  }
  // Its agent waits there.
  [[nodiscard]] bool waits_at(std::size_t number, std::size_t port) {
    return agent(number).wait_for_err(ports_[port].endpoint() + ": is there");
  }
  void start_three() {
    for (std::size_t i = 0; i < 3; ++i) {
      start(job("2:4", list()));
      ASSERT_TRUE(i > 0 || waits_at(0, 0)) << agent(0).err();
    }
    for (std::size_t i = 0; i < 3; ++i)
      ASSERT_TRUE(says(i, " of 3 restarts 0.")) << agent(i).err();
  }
  void kill_agent(std::size_t number) {
    agent(number).signal(SIGKILL);
    EXPECT_TRUE(agent(number).wait());
  }
  [[nodiscard]] bool takes_part_or_waits(std::size_t number) {
    constexpr std::chrono::milliseconds kEach{100};
    for (auto waited = kEach * 0; waited < kPatience; waited += kEach)
      if (agent(number).wait_for_err("spare: the job runs with", kEach) ||
          agent(number).out().find("round 2 ") != std::string::npos)
        return true;
    return false;
  }
  void expect_one_job(std::size_t agents, const std::string& world) {
    for (std::size_t i = 0; i < agents; ++i)
      EXPECT_TRUE(!agent(i).running() || says(i, world)) << i << agent(i).err();
  }

  ReservedPort ports_[3];
};

TEST_F(EndpointsTest, BeginsWhenMostAgentsHaveMet) {
  start(job("2:3", list()));
  ASSERT_TRUE(waits_at(0, 0)) << agent(0).err();
  EXPECT_THAT(agent(0).err(), HasSubstr("the agents of 2 of 3 endpoints"));
  EXPECT_THAT(agent(0).err(), HasSubstr(ports_[1].endpoint() + ": Connection refused"));
  start(job("2:3", list()));
  EXPECT_TRUE(says(0, " of 2 restarts 0.")) << agent(0).err();
  EXPECT_TRUE(says(1, " of 2 restarts 0.")) << agent(1).err();
  stop_all(0);
}

// Addresses tell the agents of one machine apart, too.
TEST_F(EndpointsTest, AgentsOfOneMachineHaveOnePortAtSeveralAddresses) {
  const std::string port = std::to_string(ports_[0].number());
  const std::string places = "127.0.0.1:" + port + ",127.0.0.2:" + port + ",127.0.0.3:" + port;
  for (std::size_t i = 0; i < 3; ++i)
    start(job("2:3", places));
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(says(i, " of 3 restarts 0.")) << agent(i).err();
    EXPECT_THAT(agent(i).err(), Not(HasSubstr("begins no store"))) << "each has one of them";
  }
  const auto host = [&] {
    for (std::size_t i = 0; i < 3; ++i)
      if (agent(i).running() && agent(i).err().find("round 1: ") != std::string::npos) return i;
    return std::size_t{0};
  }();
  kill_agent(host);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(i == host || says(i, " of 2 restarts 0.")) << agent(i).err();
  stop_all(host == 0 ? 1 : 0);
}

TEST_F(EndpointsTest, OneOfTwoBeginsNothing) {
  start(job("1:2", list(2), "join_timeout=2"));
  const Finished finished = agent(0).finish();
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.err, HasSubstr("the agents of 2 of 2 endpoints have met: "));
  EXPECT_THAT(finished.err, HasSubstr("start drun on the nodes that have these addresses"));
  EXPECT_EQ(finished.out, "");
}

// The first of the list is not there when the job begins.
TEST_F(EndpointsTest, TheFirstOfTheListMayComeLast) {
  // Another job's agent holds the first port, until this one runs.
  start(job("1:2", ports_[0].endpoint()));
  ASSERT_TRUE(says(0, "round 1 rank 0 of 1")) << agent(0).err();
  start(job("2:3", list()));
  ASSERT_TRUE(waits_at(1, 1)) << agent(1).err();
  EXPECT_THAT(agent(1).err(), HasSubstr(ports_[0].endpoint() + ": it was given another"));
  start(job("2:3", list()));
  ASSERT_TRUE(says(1, " of 2 restarts 0.")) << agent(1).err();
  ASSERT_TRUE(says(2, " of 2 restarts 0.")) << agent(2).err();
  agent(0).signal(SIGINT);
  ASSERT_TRUE(agent(0).wait());
  start(job("2:3", list()));
  EXPECT_TRUE(says(3, " of 3 restarts 0.")) << agent(3).err();
  EXPECT_THAT(agent(3).out(), Not(HasSubstr("round 1")));
  stop_all(3);
}

TEST_F(EndpointsTest, ANodeThatComesBackAtTheDeadHostsEndpointFindsTheJob) {
  ASSERT_NO_FATAL_FAILURE(start_three());
  kill_agent(0);
  ASSERT_TRUE(says(1, " of 2 restarts 0.")) << agent(1).err();
  ASSERT_TRUE(says(2, " of 2 restarts 0.")) << agent(2).err();
  start(job("2:4", list()));
  expect_one_job(4, "round 3 ");
  EXPECT_THAT(agent(3).out(), Not(HasSubstr("round 1")));
  // And one that has no endpoint.
  start(job("2:4", list()));
  expect_one_job(5, " of 4 restarts 0.");
  // The second host dies, and so does whoever came after it.
  kill_agent(1);
  for (const std::size_t each : {2U, 3U, 4U})
    EXPECT_TRUE(says(each, "round 5 ")) << agent(each).err();
  stop_all(4);
}

TEST_F(EndpointsTest, BeforeTheFirstRoundTheOthersMeetAnew) {
  start(job("3", list()));
  ASSERT_TRUE(waits_at(0, 0)) << agent(0).err();
  start(job("3", list()));
  ASSERT_TRUE(agent(1).wait_for_err("2 of 3 nodes")) << agent(1).err();
  kill_agent(0);
  start(job("3", list()));
  start(job("3", list()));
  for (const std::size_t each : {1U, 2U, 3U})
    EXPECT_TRUE(says(each, "round 1 ")) << agent(each).err();
  stop_all(1);
}

TEST_F(EndpointsTest, AnotherOrderIsAnotherListAndSaidSo) {
  start(job("2:3", list()));
  ASSERT_TRUE(waits_at(0, 0)) << agent(0).err();
  const std::string turned =
      ports_[1].endpoint() + "," + ports_[0].endpoint() + "," + ports_[2].endpoint();
  start(job("2:3", turned));
  EXPECT_TRUE(agent(1).wait_for_err("it was given another --rdzv-endpoint")) << agent(1).err();
  EXPECT_TRUE(agent(1).wait_for_err("give all nodes the same --rdzv-endpoint, in the same order"));
  start(job("2:3", list()));
  EXPECT_TRUE(says(0, " of 2 restarts 0.")) << agent(0).err();
  const Finished finished = agent(1).finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("has --rdzv-endpoint " + turned));
  EXPECT_THAT(finished.err, HasSubstr("the job has --rdzv-endpoint " + list()));
  stop_all(0);
}

TEST_F(EndpointsTest, AnotherJobAtTheSameEndpointsIsNamed) {
  start(job("2:3", list()));
  ASSERT_TRUE(waits_at(0, 0)) << agent(0).err();
  start(job("2:3", list()));
  ASSERT_TRUE(says(0, " of 2 restarts 0.")) << agent(0).err();
  start(Arguments{"--rdzv-id", "other"} + job("2:3", list(), "join_timeout=3"));
  const Finished finished = agent(2).finish();
  EXPECT_EQ(finished.code, 124);
  EXPECT_THAT(finished.err, HasSubstr(ports_[0].endpoint() + ": it serves another job"));
  stop_all(0);
}

// One endpoint, and the store is not there any more: who begins one of its own there is told.
TEST_F(EndpointsTest, AHostThatComesBackFindsTheStoreThatHasMoved) {
  const Arguments arguments = job("1:3", ports_[0].endpoint(), "successors=3");
  start(arguments);
  ASSERT_TRUE(says(0, "round 1 ")) << agent(0).err();
  start(arguments);
  start(arguments);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(says(i, " of 3 restarts 0.")) << agent(i).err();
  kill_agent(0);
  ASSERT_TRUE(says(1, " of 2 restarts 0.")) << agent(1).err();
  start(arguments);
  EXPECT_TRUE(agent(3).wait_for_err("the store is now at ")) << agent(3).err();
  EXPECT_TRUE(says(3, " of 3 restarts 0.")) << agent(3).err();
  EXPECT_THAT(agent(3).out(), Not(HasSubstr("rank 0"))) << "it began none of its own";
  stop_all(3);
}

// As many as MAX begin at the endpoint while the job's store is elsewhere: this test plays the
// agent that has it, and tells the endpoint's as soon as it is there.
TEST_F(EndpointsTest, NoRoundBeginsAtTheEndpointOfAStoreThatHasMoved) {
  const Store later(std::to_string(ports_[1].number()));
  const Arguments arguments =
      Arguments{"--rdzv-id", "moved"} + job("2", ports_[0].endpoint(), "successors=3");
  start(arguments);
  const auto deadline = store::ControlQuery::Deadline::clock::now() + kPatience;
  auto teller = store::ControlQuery::open(
      {"127.0.0.1", static_cast<std::uint16_t>(ports_[0].number())}, deadline, true, nullptr);
  ASSERT_TRUE(teller);
  const std::string prefix = "drun/moved/";
  const auto told =
      teller->send(store::control::Find{2, "127.0.0.1",
                                        static_cast<std::uint16_t>(ports_[1].number()), prefix, 0},
                   deadline);
  ASSERT_TRUE(told);
  ASSERT_TRUE(teller->receive(*told, deadline));
  start(arguments);
  for (const std::size_t each : {0U, 1U}) {
    ASSERT_TRUE(agent(each).wait_for_err("the store is now at ")) << agent(each).err();
    EXPECT_TRUE(says(each, "round 1 ")) << agent(each).err();
  }
  // What the endpoint's own store holds: at the most, that its agent waited there alone.
  const auto round = teller->send(store::control::Watch{prefix + "round", false}, deadline);
  ASSERT_TRUE(round);
  const auto held = teller->receive(*round, deadline);
  ASSERT_TRUE(held);
  for (const auto& entry : std::get<store::control::Snapshot>(*held).entries)
    EXPECT_THAT(std::string(entry.value.value_or("")), HasSubstr("\"phase\":\"gathering\""));
  stop_all(1);
}

// So many at once that they could be a job of their own, while the store is on its way.
TEST_F(EndpointsTest, AsManyNewcomersAsNodesBeginNoJobBesideTheOneThatRuns) {
  const Arguments arguments = job("3", ports_[0].endpoint(), "successors=3");
  start(arguments);
  ASSERT_TRUE(agent(0).wait_for_err("waiting")) << agent(0).err();
  start(arguments);
  start(arguments);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_TRUE(says(i, "round 1 ")) << agent(i).err();
  kill_agent(0);
  for (int i = 0; i < 3; ++i)
    start(arguments);
  for (const std::size_t survivor : {1U, 2U})
    EXPECT_TRUE(says(survivor, "round 2 ")) << agent(survivor).err();
  // One is taken in. Whom the job does not know yet, it cannot end.
  for (const std::size_t newcomer : {3U, 4U, 5U}) {
    EXPECT_TRUE(takes_part_or_waits(newcomer)) << agent(newcomer).err();
    EXPECT_THAT(agent(newcomer).out(), Not(HasSubstr("round 1 "))) << agent(newcomer).err();
  }
  stop_all(1);
}

}  // namespace
}  // namespace drun::test
