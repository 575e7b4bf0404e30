#include "hang/node_stillness.hpp"

#include <gtest/gtest.h>

#include "support/rank_looks.hpp"

namespace drun::hang {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::rank_with;

class NodeStillnessTest : public testing::Test {
 protected:
  void look() {
    NodeLook look;
    look.at = now_;
    for (const auto& [worker, rank] : ranks_)
      look.ranks.emplace(worker, rank);
    rule_.on_look(std::move(look));
  }
  void after(milliseconds time) {
    for (const auto end = now_ + time; now_ < end;) {
      now_ += rule_.interval();
      look();
    }
  }

  NodeStillness rule_{seconds(100)};
  NodeStillness::Time now_{seconds(1'000)};
  std::map<std::uint32_t, RankLook> ranks_{{1, rank_with(0, 0)}, {2, rank_with(0, 0)}};
};

TEST_F(NodeStillnessTest, LooksTenTimesWithinTheTimeout) {
  EXPECT_EQ(NodeStillness(seconds(100)).interval(), seconds(10));
  EXPECT_EQ(NodeStillness(seconds(1)).interval(), milliseconds(200));
  EXPECT_EQ(NodeStillness(seconds(3'600)).interval(), seconds(60));
}

TEST_F(NodeStillnessTest, StalledWhenAllHaveWaitedForTheWholeTime) {
  look();
  after(seconds(90));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(20));
  EXPECT_TRUE(rule_.stalled());
}

TEST_F(NodeStillnessTest, OneRankThatGetsOnIsEnough) {
  look();
  for (std::uint64_t i = 1; i < 30; ++i) {
    ranks_[2] = rank_with(i, 0);
    after(seconds(10));
    EXPECT_FALSE(rule_.stalled());
  }
  after(seconds(110));
  EXPECT_TRUE(rule_.stalled());
  ranks_[2] = rank_with(99, 0);
  after(seconds(10));
  EXPECT_FALSE(rule_.stalled());
}

TEST_F(NodeStillnessTest, OneRankThatGetsOnNowAndThenIsEnough) {
  look();
  for (std::uint64_t i = 1; i < 5; ++i) {
    ranks_[2] = rank_with(i, 0);
    after(seconds(90));
    EXPECT_FALSE(rule_.stalled());
  }
}

TEST_F(NodeStillnessTest, OneOfWhichNobodyKnowsIsEnoughAndToldOfOnce) {
  look();
  std::uint64_t cpu_ms = 0;
  for (int i = 0; i < 30; ++i) {
    ranks_[2] = rank_with(0, cpu_ms += 10'000);
    after(seconds(10));
    EXPECT_FALSE(rule_.stalled());
    EXPECT_EQ(rule_.take_doubt().has_value(), i == 9) << i;
  }
}

TEST_F(NodeStillnessTest, NobodyDoubtsOneThatGetsOn) {
  look();
  std::uint64_t cpu_ms = 0;
  for (std::uint64_t i = 0; i < 30; ++i) {
    ranks_[1] = rank_with(i / 5, 0);
    ranks_[2] = rank_with(0, cpu_ms += 10'000);
    after(seconds(10));
    EXPECT_FALSE(rule_.take_doubt());
  }
}

TEST_F(NodeStillnessTest, ARankThatHasEndedIsNotWaitedForButTheOthersHaveTheWholeTime) {
  look();
  for (std::uint64_t i = 1; i < 30; ++i) {
    ranks_[2] = rank_with(i, 0);
    after(seconds(10));
  }
  ranks_.erase(2);
  after(seconds(100));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(20));
  EXPECT_TRUE(rule_.stalled());
  ranks_.clear();
  after(seconds(10));
  EXPECT_FALSE(rule_.stalled());
}

TEST_F(NodeStillnessTest, ANewRankBeginsAnew) {
  look();
  after(seconds(90));
  ranks_.emplace(3, rank_with(0, 0));
  after(seconds(50));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(70));
  EXPECT_TRUE(rule_.stalled());
}

TEST_F(NodeStillnessTest, TimeInWhichNobodyLookedIsNotCounted) {
  look();
  after(seconds(50));
  now_ += seconds(30);  // drun was stopped for a while
  after(seconds(30));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(20));
  EXPECT_TRUE(rule_.stalled());
}

TEST_F(NodeStillnessTest, AfterAPauseAllBeginsAnew) {
  look();
  after(seconds(90));
  now_ += seconds(3'600);  // drun was stopped
  look();
  after(seconds(90));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(20));
  EXPECT_TRUE(rule_.stalled());
}

// Those that spin in a collective are busy, and nothing comes of them.
TEST_F(NodeStillnessTest, BusyRanksWaitIfTheirCollectiveIsStuck) {
  look();
  for (std::uint64_t i = 1; i <= 11; ++i) {
    ranks_[2] = rank_with(0, i * 10'000);
    after(seconds(10));
    EXPECT_EQ(rule_.busy_in_vain(), i > 4) << i;
    EXPECT_FALSE(rule_.stalled());
    if (i == 6) {
      rule_.on_stuck_collective();
      EXPECT_FALSE(rule_.stalled()) << "not for the whole time";
    }
  }
  rule_.on_stuck_collective();
  EXPECT_TRUE(rule_.stalled());
  EXPECT_FALSE(rule_.take_doubt());
  ranks_[1] = rank_with(1, 0);
  after(seconds(10));
  EXPECT_FALSE(rule_.stalled());
  EXPECT_FALSE(rule_.busy_in_vain());
  rule_.on_stuck_collective();
  EXPECT_FALSE(rule_.stalled());
}

// A dump that drun has asked for is written: the hang is still the same.
TEST_F(NodeStillnessTest, WhatRanksWereAskedForIsNoLifeOfTheirs) {
  look();
  after(seconds(110));
  ASSERT_TRUE(rule_.stalled());
  rule_.begin_to_overlook();
  for (std::uint64_t i = 1; i < 4; ++i) {
    ranks_[1] = rank_with(i, 0);
    after(seconds(10));
    EXPECT_TRUE(rule_.stalled());
  }
  rule_.end_to_overlook(2);
  ranks_[1] = rank_with(5, 0);
  ranks_[1].network_bytes.reset();  // it has done something
  after(seconds(10));
  EXPECT_TRUE(rule_.stalled());
  ranks_[1].network_bytes = 0;
  after(seconds(10));
  EXPECT_TRUE(rule_.stalled());
  after(seconds(10));
  EXPECT_TRUE(rule_.stalled());
  ranks_[1] = rank_with(6, 0);
  after(seconds(10));
  EXPECT_FALSE(rule_.stalled());
}

// Whoever asks for dumps again and again makes no working job look like one that hangs.
TEST_F(NodeStillnessTest, TimeInWhichLooksTellNothingIsNotCounted) {
  look();
  after(seconds(50));
  rule_.begin_to_overlook();
  rule_.begin_to_overlook();
  after(seconds(500));
  rule_.end_to_overlook(0);
  after(seconds(500));
  EXPECT_FALSE(rule_.stalled());
  rule_.end_to_overlook(0);
  after(seconds(40));
  EXPECT_FALSE(rule_.stalled());
  after(seconds(20));
  EXPECT_TRUE(rule_.stalled());
}

TEST_F(NodeStillnessTest, AHangStaysOneWhileNobodyCouldLook) {
  look();
  after(seconds(110));
  ASSERT_TRUE(rule_.stalled());
  now_ += seconds(300);
  rule_.leave_out(seconds(300));
  look();
  EXPECT_TRUE(rule_.stalled());
}

// What it was at first; later it may be what drun itself does to the rank.
TEST_F(NodeStillnessTest, TheFirstDoubtIsTold) {
  look();
  ranks_[2].opaque = "what a first look lacks";
  after(seconds(10));
  ranks_[2].opaque = "the first";
  after(seconds(10));
  ranks_[2].opaque = "another";
  after(seconds(90));
  EXPECT_EQ(rule_.take_doubt(), (Doubt{2, "the first"}));
}

TEST_F(NodeStillnessTest, NobodyIsBusyWhereAllSleep) {
  look();
  after(seconds(110));
  EXPECT_FALSE(rule_.busy_in_vain());
}

}  // namespace
}  // namespace drun::hang
