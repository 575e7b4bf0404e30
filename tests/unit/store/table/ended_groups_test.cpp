#include "store/table/ended_groups.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

class EndedGroupsTest : public testing::Test {
 protected:
  void put(std::string_view key, SessionId owner = kNoSession) {
    ASSERT_TRUE(table.put(key, "x", owner));
    table.publish();
  }
  void pass(int ms) {
    now += Milliseconds(ms);
    groups.check(now);
  }

  Budget budget{1'000'000};
  KeyTable table{budget};
  EndedGroups groups{table, "drun", "outcome", Milliseconds(8000)};
  Time now{};
};

TEST_F(EndedGroupsTest, AJobIsForgottenSomeTimeAfterItsEnd) {
  put("drun/a/round");
  put("drun/a/assign/1");
  put("drun/a/member/1", 7);
  put("drun/a/outcome");
  put("drun/ab/round");
  put("drun/b/outcome/not");
  put("drun/outcome");
  put("other/a/outcome");
  pass(100'000);
  EXPECT_EQ(table.size(), 8U) << "an agent is there";
  table.erase_owned_by(7);
  pass(1000);
  const std::uint64_t before = table.revision();
  pass(7999);
  EXPECT_EQ(table.size(), 7U);
  pass(1001);
  EXPECT_EQ(table.size(), 4U);
  EXPECT_EQ(table.find("drun/a/round"), nullptr);
  EXPECT_NE(table.find("drun/ab/round"), nullptr);
  EXPECT_EQ(table.revision(), before + 1) << "as one change";
}

TEST_F(EndedGroupsTest, WhatComesToLifeAgainHasItsTimeAnew) {
  put("drun/a/outcome");
  pass(1000);
  pass(7000);
  put("drun/a/member/1", 7);
  pass(2000);
  EXPECT_EQ(table.size(), 2U);
  table.erase_owned_by(7);
  pass(1000);
  pass(7000);
  EXPECT_EQ(table.size(), 1U);
  table.erase("drun/a/outcome");
  table.publish();
  pass(1000);
  put("drun/a/outcome");
  pass(1000);
  pass(7000);
  EXPECT_EQ(table.size(), 1U);
  pass(1000);
  EXPECT_EQ(table.size(), 0U);
}

// Its agents were killed, or have gone to another store.
TEST_F(EndedGroupsTest, AJobThatWasAbandonedIsForgottenLater) {
  put("drun/a/round");
  put("drun/a/member/1", 7);
  pass(100'000);
  EXPECT_EQ(table.size(), 2U) << "an agent is there";
  table.erase_owned_by(7);
  pass(1000);
  pass(31'999);
  EXPECT_EQ(table.size(), 1U);
  put("drun/a/member/1", 8);
  pass(1001);
  table.erase_owned_by(8);
  pass(1000);
  pass(31'999);
  EXPECT_EQ(table.size(), 1U) << "it has its time anew";
  pass(1001);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(EndedGroupsTest, WhatIsMarkedLaterHasTheTimeOfWhatHasEnded) {
  put("drun/a/round");
  pass(1000);
  pass(31'000);
  put("drun/a/outcome");
  pass(1000);
  pass(7000);
  EXPECT_EQ(table.size(), 2U);
  pass(1000);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(EndedGroupsTest, ItLooksNoOftenerThanItMust) {
  put("drun/a/outcome");
  pass(1000);
  EXPECT_EQ(groups.next_check(), now + Milliseconds(1000));
  EndedGroups slow{table, "drun", "outcome", std::chrono::hours(10)};
  slow.check(now);
  EXPECT_EQ(slow.next_check(), now + std::chrono::minutes(1));
}

}  // namespace
}  // namespace drun::store
