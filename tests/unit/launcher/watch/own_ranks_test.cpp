#include "launcher/watch/own_ranks.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

class OwnRanksTest : public testing::Test {
 protected:
  // At the next time that matters.
  bool later(bool awaited) {
    now_ = ranks_.next_deadline().value();
    return ranks_.on_time(now_, awaited);
  }

  OwnRanks::Time now_{std::chrono::hours(1)};
  bool there_ = false;  // what a look finds
  int looks_ = 0;
  OwnRanks ranks_{[this] {
    ++looks_;
    return std::make_shared<std::atomic<bool>>(there_);
  }};
};

TEST_F(OwnRanksTest, AreSaidOnceAndOnlyWhileNobodyComes) {
  for (const bool awaited : {true, false}) {
    there_ = true;
    ranks_.begin(now_);
    EXPECT_EQ(ranks_.next_deadline(), now_ + OwnRanks::kInterval);
    EXPECT_FALSE(ranks_.on_time(now_, true)) << "not yet";
    EXPECT_FALSE(later(true)) << "they have their time to come";
    EXPECT_EQ(later(awaited), awaited);
    EXPECT_FALSE(ranks_.next_deadline());
    EXPECT_FALSE(ranks_.on_time(now_ + OwnRanks::kInterval, true));
  }
}

TEST_F(OwnRanksTest, AreLookedForAFewTimes) {
  ranks_.begin(now_);
  while (ranks_.next_deadline())
    EXPECT_FALSE(later(true));
  EXPECT_EQ(looks_, OwnRanks::kLooks);
}

TEST_F(OwnRanksTest, MayComeLate) {
  ranks_.begin(now_);
  EXPECT_FALSE(later(true));
  there_ = true;
  EXPECT_FALSE(later(true));
  EXPECT_TRUE(later(true));
}

TEST_F(OwnRanksTest, ARoundThatEndsIsNotLookedAt) {
  ranks_.begin(now_);
  ranks_.end();
  EXPECT_FALSE(ranks_.next_deadline());
  EXPECT_FALSE(ranks_.on_time(now_ + OwnRanks::kInterval, true));
  EXPECT_EQ(looks_, 0);
}

TEST(SpawnedByPythonTest, IsSeenByTheCommandLine) {
  const std::string zero(1, '\0');
  EXPECT_TRUE(is_spawned_by_python("/usr/bin/python3" + zero + "-B" + zero + "-c" + zero +
                                   "from multiprocessing.spawn import spawn_main; spawn_main("
                                   "tracker_fd=6, pipe_handle=8)" +
                                   zero + "--multiprocessing-fork" + zero));
  EXPECT_FALSE(is_spawned_by_python("/usr/bin/python3" + zero + "-u" + zero + "train.py" + zero));
  EXPECT_FALSE(is_spawned_by_python("python3" + zero + "-c" + zero +
                                    "from multiprocessing.resource_tracker import main;main(5)" +
                                    zero));
}

}  // namespace
}  // namespace drun::launcher
