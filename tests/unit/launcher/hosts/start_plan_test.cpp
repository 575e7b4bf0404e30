// What each host is told.
#include "launcher/hosts/start_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using testing::ElementsAre;

TEST(StartPlanTest, NodesMeetWhereTheFirstOneIsReached) {
  const struct {
    const char* name;
    const char* address;
    const char* place;
  } cases[] = {
      {"gpu1", "10.0.0.7", "10.0.0.7:4711"},
      {"gpu1", "fd00::7", "[fd00::7]:4711"},
      {"me@gpu1", "", "gpu1:4711"},
      {"gpu1", "fe80::1%eth0", "gpu1:4711"},
      {"gpu1", "127.0.1.1", "gpu1:4711"},
      {"127.0.0.2", "127.0.0.2", "127.0.0.2:4711"},
      {"me@localhost", "::1", "here:4711"},
      {"gpu1", "not an address", "gpu1:4711"},
      // Only ssh knows it, and it is this machine.
      {"me@alias", "127.0.0.1", "here:4711"},
      {"alias", "10.0.0.7", "10.0.0.7:4711"},
      {"pod-0", "", "pod-0:4711"},
  };
  for (const auto& [name, address, place] : cases)
    EXPECT_EQ(meeting_place_at(name, {"1", address, "4711", "here"},
                               [](const std::string& known) { return known == "gpu1"; }),
              place)
        << name;
}

TEST(StartPlanTest, AnAgentIsToldWhichNodeItIs) {
  StartPlan plan;
  plan.hosts = {{"a", 4, {}}, {"b", {}, {}}};
  plan.flags = {"drun", "--nnodes=2"};
  plan.program = {"./train", "--x"};
  const Meeting meeting{"a:1", 0};
  EXPECT_THAT(agent_command(plan, 0, meeting),
              ElementsAre("drun", "--nnodes=2", "--node-rank=0", "--nproc-per-node=4",
                          "--rdzv-backend=c10d", "--rdzv-endpoint=a:1", "--rdzv-conf=is_host=true",
                          "--", "./train", "--x"));
  plan.conf = "join_timeout=9";
  EXPECT_THAT(agent_command(plan, 1, meeting),
              ElementsAre("drun", "--nnodes=2", "--node-rank=1", "--rdzv-backend=c10d",
                          "--rdzv-endpoint=a:1", "--rdzv-conf=join_timeout=9,is_host=false", "--",
                          "./train", "--x"));
  plan.says_is_host = true;
  plan.slots_count = false;
  EXPECT_THAT(
      agent_command(plan, 0, meeting),
      ElementsAre("drun", "--nnodes=2", "--node-rank=0", "--rdzv-backend=c10d",
                  "--rdzv-endpoint=a:1", "--rdzv-conf=join_timeout=9", "--", "./train", "--x"));
  plan.meet_at_first = false;
  plan.hosts.pop_back();
  EXPECT_THAT(agent_command(plan, 0, {}),
              ElementsAre("drun", "--nnodes=2", "--", "./train", "--x"));
}

}  // namespace
}  // namespace drun::launcher::hosts
