#include "launcher/leaving/store_linger.hpp"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using Step = StoreLinger::Step;
using rendezvous::Change;
using rendezvous::Keys;
using rendezvous::WatchChanges;
using rendezvous::WatchSnapshot;

constexpr rendezvous::WatchId kOtherWatch = 7;

Change agent_of(const std::string& job) {
  return {Keys(job).member("ticket"), "here"};
}

Change agent_leaves(const std::string& job) {
  return {Keys(job).member("ticket"), std::nullopt};
}

class StoreLingerTest : public testing::Test {
 protected:
  StoreLinger linger_{"own"};
};

TEST_F(StoreLingerTest, StopsTheStoreAtOnceIfNobodyElseIsThere) {
  EXPECT_EQ(linger_.on_event(WatchSnapshot{StoreLinger::kWatch, {agent_of("own")}}),
            Step::StopStore);
}

TEST_F(StoreLingerTest, StaysUntilTheLastOtherAgentHasLeft) {
  EXPECT_EQ(linger_.on_event(WatchSnapshot{StoreLinger::kWatch, {agent_of("a"), agent_of("own")}}),
            Step::Say);
  EXPECT_NE(linger_.text().find("'a' (1 node)"), std::string::npos) << linger_.text();
  EXPECT_EQ(linger_.on_event(WatchChanges{StoreLinger::kWatch, {agent_of("b")}}), Step::None)
      << "it was said already";
  EXPECT_EQ(linger_.on_event(WatchChanges{StoreLinger::kWatch, {agent_leaves("a")}}), Step::None);
  EXPECT_EQ(linger_.on_event(WatchChanges{StoreLinger::kWatch, {agent_leaves("b")}}),
            Step::StopStore);
}

// The store was asked to stop, but somebody came in between.
TEST_F(StoreLingerTest, StaysForWhoComesLate) {
  EXPECT_EQ(linger_.on_event(WatchSnapshot{StoreLinger::kWatch, {}}), Step::StopStore);
  EXPECT_TRUE(linger_.needs(agent_of("late").key));
  EXPECT_EQ(linger_.on_event(WatchChanges{StoreLinger::kWatch, {agent_of("late")}}), Step::Say);
  EXPECT_EQ(linger_.on_event(WatchChanges{StoreLinger::kWatch, {agent_leaves("late")}}),
            Step::StopStore);
}

TEST_F(StoreLingerTest, ASnapshotAfterAReconnectionReplacesWhatWasKnown) {
  EXPECT_EQ(linger_.on_event(WatchSnapshot{StoreLinger::kWatch, {agent_of("a")}}), Step::Say);
  EXPECT_EQ(linger_.on_event(WatchSnapshot{StoreLinger::kWatch, {}}), Step::StopStore);
}

TEST_F(StoreLingerTest, OtherEventsSayNothing) {
  EXPECT_EQ(linger_.on_event(WatchSnapshot{kOtherWatch, {}}), Step::None);
  EXPECT_EQ(linger_.on_event(WatchChanges{kOtherWatch, {agent_leaves("a")}}), Step::None);
  EXPECT_EQ(linger_.on_event(rendezvous::CommitResult{}), Step::None);
  EXPECT_EQ(linger_.on_event(rendezvous::LinkEvent{}), Step::None);
}

TEST_F(StoreLingerTest, OnlyAgentsOfOtherJobsNeedTheStore) {
  EXPECT_TRUE(linger_.needs(agent_of("a").key));
  EXPECT_FALSE(linger_.needs(agent_of("own").key));
  EXPECT_FALSE(linger_.needs(Keys("a").outcome));
  EXPECT_FALSE(linger_.needs("a key of somebody's"));
}

}  // namespace
}  // namespace drun::launcher
