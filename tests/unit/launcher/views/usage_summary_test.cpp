#include "launcher/views/usage_summary.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/recorded_key_value.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using drun::test::RecordedKeyValue;
using rendezvous::CommitOutcome;
using rendezvous::CommitResult;
using rendezvous::Link;
using rendezvous::LinkEvent;
using rendezvous::WatchChanges;
using rendezvous::WatchRejected;
using rendezvous::WatchSnapshot;
using test::place_of;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

using Lines = std::vector<std::string>;

class UsageSummaryTest : public testing::Test {
 protected:
  UsageSummaryTest() { summary_.set_link(&store_); }

  void run(const rendezvous::Assignment& place) { summary_.on_workers(rig_.start(place)); }
  void succeed() {
    for (const std::size_t local_rank : {0U, 1U})
      summary_.on_workers(rig_.end(local_rank, 0, kUsed));
  }
  void at_end() {
    summary_.at_end([this](Lines lines) {
      EXPECT_FALSE(lines_) << "told twice";
      lines_ = std::move(lines);
    });
  }
  static rendezvous::Change told(int round, int node) {
    jobs::NodeUsage usage{round, node, "node" + std::to_string(node), {}};
    for (const int rank : {2 * node, 2 * node + 1})
      usage.ranks.push_back({rank, 1'000, 2'000, 0, 0, 5});
    return {"drun/train/usage/" + std::to_string(node), encode(usage)};
  }
  bool change(rendezvous::Change change) {
    return summary_.on_event(WatchChanges{UsageSummary::kWatch, {std::move(change)}});
  }
  // What this node has told.
  std::vector<jobs::NodeUsage> take_own() {
    std::vector<jobs::NodeUsage> result;
    for (const auto& write : std::exchange(store_.writes, {})) {
      EXPECT_THAT(write.key, StartsWith("drun/train/usage/"));
      EXPECT_TRUE(write.ephemeral) << "it goes with the agent";
      result.push_back(jobs::decode_usage(write.value.value()).value());
    }
    return result;
  }

  static constexpr process::Usage kUsed{70, 80, 90, 100, 110};
  asio::io_context io_{1};
  test::GroupRig rig_;
  GpuLedger gpus_;
  RecordedKeyValue store_;
  UsageSummary summary_{io_, "train", "node7", rig_.group, gpus_};
  std::optional<Lines> lines_;
};

TEST_F(UsageSummaryTest, ANodeTellsWhatItsWorkersHaveUsed) {
  run(place_of(1, 2, 3));
  EXPECT_THAT(store_.take(), IsEmpty()) << "another node makes the table";
  succeed();
  EXPECT_THAT(store_.take(), ElementsAre("commit"));
  const jobs::NodeUsage expected{
      3, 1, "node7", {{2, 70, 80, 90, 100, 110}, {3, 70, 80, 90, 100, 110}}};
  EXPECT_THAT(take_own(), ElementsAre(expected));
  at_end();
  EXPECT_EQ(lines_, Lines());
}

TEST_F(UsageSummaryTest, AndWhatTheyHadOfGpusInThisRound) {
  run(place_of(1, 2, 3));
  gpus_.note(3, {true, {{102, 4'096, 30}}});
  succeed();
  const jobs::NodeUsage expected{
      3, 1, "node7", {{2, 70, 80, 90, 100, 110}, {3, 70, 80, 90, 100, 110, 4'096, 30}}};
  EXPECT_THAT(take_own(), ElementsAre(expected));
  (void)rig_.stop();
  run(place_of(1, 2, 4));
  summary_.on_workers(rig_.stop());
  EXPECT_THAT(take_own(), ElementsAre(testing::Field(&jobs::NodeUsage::ranks, IsEmpty())));
}

TEST_F(UsageSummaryTest, AStoppedRoundIsToldOfOnceAndSoIsTheNext) {
  run(place_of(1, 2, 3));
  GroupNews stopped = rig_.stop();
  summary_.on_workers(stopped);
  summary_.on_workers(stopped);
  EXPECT_THAT(take_own(), SizeIs(1));
  run(place_of(1, 2, 4));
  summary_.on_workers(rig_.stop());
  EXPECT_THAT(take_own(), ElementsAre(testing::Field(&jobs::NodeUsage::round, 4)));
}

TEST_F(UsageSummaryTest, OfAWorkerOfWhichNothingIsKnownNothingIsTold) {
  run(place_of(1, 2));
  summary_.on_workers(rig_.end(0, 0, kUsed));
  EXPECT_THAT(take_own(), IsEmpty()) << "one still runs";
  summary_.on_workers(rig_.end(1, 0, {}));
  const auto own = take_own();
  ASSERT_THAT(own, SizeIs(1));
  EXPECT_THAT(own.front().ranks, ElementsAre(testing::Field(&jobs::RankUsage::rank, 2)));
}

TEST_F(UsageSummaryTest, TheFirstNodeMakesATableOfWhatAllHaveTold) {
  run(place_of(0, 2, 3));
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/usage/*"));
  succeed();
  EXPECT_TRUE(summary_.on_event(WatchSnapshot{UsageSummary::kWatch, {told(3, 0)}}));
  at_end();
  EXPECT_FALSE(lines_) << "one is missing";
  EXPECT_TRUE(change(told(3, 1)));
  ASSERT_TRUE(lines_);
  EXPECT_EQ(*lines_, jobs::usage_table({jobs::decode_usage(*told(3, 0).value).value(),
                                        jobs::decode_usage(*told(3, 1).value).value()},
                                       4));
  EXPECT_THAT(*lines_, testing::Not(IsEmpty()));
}

TEST_F(UsageSummaryTest, WhoHasTheWholeTableWaitsForNobody) {
  run(place_of(0, 2, 3));
  EXPECT_TRUE(change(told(3, 0)));
  EXPECT_TRUE(change(told(3, 1)));
  EXPECT_TRUE(change({told(3, 1).key, std::nullopt})) << "its agent has left";
  at_end();
  EXPECT_TRUE(lines_);
}

TEST_F(UsageSummaryTest, OnlyTheLastRoundCounts) {
  run(place_of(0, 2, 3));
  EXPECT_TRUE(change(told(3, 0)));
  EXPECT_TRUE(change(told(3, 1)));
  (void)rig_.stop();
  run(place_of(0, 2, 4));
  EXPECT_THAT(store_.take(), Contains("watch drun/train/usage/*").Times(1));
  EXPECT_TRUE(change(told(4, 0)));
  for (const int node : {0, 1})
    EXPECT_TRUE(change(told(3, node))) << "late";
  at_end();
  EXPECT_FALSE(lines_);
  EXPECT_TRUE(change({"drun/train/usage/x", "no usage"})) << "nothing is believed";
  EXPECT_FALSE(lines_);
  EXPECT_TRUE(change(told(4, 1)));
  EXPECT_TRUE(lines_);
}

TEST_F(UsageSummaryTest, ANodeThatTellsNothingIsWaitedForForAWhile) {
  run(place_of(0, 2, 3));
  EXPECT_TRUE(change(told(3, 0)));
  at_end();
  const auto begun = std::chrono::steady_clock::now();
  io_.run_for(kPatience);
  ASSERT_TRUE(lines_);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, UsageSummary::kLimit);
  EXPECT_THAT(*lines_, testing::Not(IsEmpty())) << "of those that did";
}

TEST_F(UsageSummaryTest, WithoutAStoreOrPatienceNobodyIsWaitedFor) {
  for (const int way : {0, 1, 2, 3}) {
    lines_.reset();
    summary_.set_link(&store_);
    run(place_of(0, 2, 3 + way));
    if (way == 0) summary_.set_link(nullptr);
    at_end();
    if (way == 1) summary_.give_up();
    const auto link = way == 2 ? Link::Failed : Link::Closed;
    if (way >= 2) {
      EXPECT_FALSE(summary_.on_event(LinkEvent{link, "gone"})) << "others must hear";
    }
    EXPECT_TRUE(lines_) << way;
    (void)rig_.stop();
  }
}

TEST_F(UsageSummaryTest, WhatIsClosedTellsNothing) {
  run(place_of(0, 2, 3));
  at_end();
  summary_.close();
  summary_.give_up();
  EXPECT_FALSE(lines_);
  io_.run();
}

TEST_F(UsageSummaryTest, ItsOwnEventsAreNobodyElsesBusiness) {
  EXPECT_TRUE(summary_.on_event(CommitResult{UsageSummary::kRequest, CommitOutcome::Committed}));
  EXPECT_TRUE(summary_.on_event(WatchRejected{UsageSummary::kWatch, "too much"}));
  EXPECT_FALSE(summary_.on_event(CommitResult{1, CommitOutcome::Committed}));
  EXPECT_FALSE(summary_.on_event(WatchRejected{1, "too much"}));
  EXPECT_FALSE(summary_.on_event(WatchSnapshot{1, {}}));
  EXPECT_FALSE(summary_.on_event(WatchChanges{1, {}}));
}

}  // namespace
}  // namespace drun::launcher
