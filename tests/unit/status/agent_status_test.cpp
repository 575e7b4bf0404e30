#include "status/agent_status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::status {
namespace {

AgentStatus running() {
  AgentStatus result;
  result.job = "train";
  result.host = "node1";
  result.pid = 4711;
  result.phase = Phase::Running;
  result.endpoint = "node0:29400";
  result.round = 2;
  result.nodes = 2;
  result.group_rank = 1;
  result.first_rank = 4;
  result.workers = 4;
  result.world_size = 8;
  result.restart_count = 1;
  return result;
}

TEST(AgentStatusTest, IsALineOfJson) {
  EXPECT_EQ(to_json(running()),
            R"({"job":"train","host":"node1","pid":4711,"phase":"running","waiting":"",)"
            R"("endpoint":"node0:29400","round":2,"nodes":2,"group_rank":1,"first_rank":4,)"
            R"("workers":4,"world_size":8,"restart_count":1})");
  AgentStatus gathering;
  gathering.phase = Phase::Gathering;
  gathering.waiting = "a \"b\"\n\xff";
  EXPECT_EQ(to_json(gathering), R"({"job":"","host":"","pid":0,"phase":"gathering",)"
                                "\"waiting\":\"a \\\"b\\\"\\n\xef\xbf\xbd\","
                                R"("endpoint":"","round":0})");
}

TEST(AgentStatusTest, IsReadAgain) {
  const auto again = parse_status(to_json(running()));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, running());
  AgentStatus gathering;
  gathering.phase = Phase::Gathering;
  EXPECT_EQ(*parse_status(to_json(gathering)), gathering);
}

TEST(AgentStatusTest, AStoreThatHasMovedIsNamed) {
  AgentStatus moved = running();
  moved.store = "10.0.0.7:41000";
  EXPECT_NE(to_json(moved).find(R"("endpoint":"node0:29400","store":"10.0.0.7:41000",)"),
            std::string::npos);
  EXPECT_EQ(*parse_status(to_json(moved)), moved);
}

TEST(AgentStatusTest, ARankThatIsBehindIsReadAgainWithAndWithoutItsStep) {
  for (const std::int64_t step : {std::int64_t{-1}, std::int64_t{5'000'000'000}}) {
    AgentStatus status = running();
    status.behind = RankBeat{5, step, 12'300};
    status.collective = "rank 1 has begun 99 AllReduce, the other 100";
    EXPECT_EQ(*parse_status(to_json(status)), status);
  }
}

TEST(AgentStatusTest, EveryPhaseHasAName) {
  for (const char* name :
       {"searching", "gathering", "spare", "starting", "running", "stopping", "leaving"}) {
    const auto phase = phase_of(name);
    ASSERT_TRUE(phase) << name;
    EXPECT_EQ(name_of(*phase), name);
  }
  EXPECT_FALSE(phase_of("asleep"));
}

// A newer drun may say more.
TEST(AgentStatusTest, MembersThatAreNotKnownAreIgnored) {
  std::string text = to_json(running());
  text.insert(1, R"("news":[1,{}],)");
  EXPECT_EQ(*parse_status(text), running());
}

TEST(AgentStatusTest, WhatIsNoStatusIsAnError) {
  const std::string good = to_json(running());
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{good, ""},
                                                        {good, "[]"},
                                                        {good, "{}"},
                                                        {"4711", "-1"},
                                                        {"4711", "4711.5"},
                                                        {"\"running\"", "\"asleep\""},
                                                        {"\"train\"", "7"},
                                                        {"\"round\":2", "\"round\":2147483648"},
                                                        {"\"world_size\":8,", ""},
                                                        {"}", ""}}) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(parse_status(bad)) << bad;
  }
}

}  // namespace
}  // namespace drun::status
