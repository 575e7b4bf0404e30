#include "launcher/views/job_watchers.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/group_rig.hpp"
#include "support/patience.hpp"
#include "support/recorded_key_value.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using drun::test::RecordedKeyValue;
using rendezvous::WatchSnapshot;
using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;

class JobWatchersTest : public testing::Test {
 protected:
  JobWatchersTest() {
    options_.run_id = "train";
    own_.job = "train";
  }
  JobWatchers watchers() {
    return {io_,
            options_,
            "node7",
            rig_.group,
            gpus_,
            events_,
            [this] { return own_; },
            [](const PageStacks::Done&) {}};
  }

  const drun::test::TemporaryDirectory folder_;
  asio::io_context io_{1};
  Options options_;
  test::GroupRig rig_;
  GpuLedger gpus_;
  EventMemory events_;
  status::AgentStatus own_;
  RecordedKeyValue store_;
};

TEST_F(JobWatchersTest, WhatNobodyAskedForIsNotThere) {
  auto watchers = this->watchers();
  EXPECT_EQ(watchers.summary(), nullptr);
  EXPECT_EQ(watchers.metrics_file(), nullptr);
  watchers.open();
  watchers.set_link(&store_);
  GroupNews started;
  started.started = true;
  watchers.on_workers(started);
  EXPECT_FALSE(watchers.on_event(WatchSnapshot{MetricsFile::kWatch, {}}));
  EXPECT_EQ(io_.run(), 0U);
  EXPECT_THAT(store_.take(), IsEmpty());
  watchers.close();
}

TEST_F(JobWatchersTest, AgentsOfAMachineHaveOneFile) {
  options_.metrics_file = folder_.file("drun.prom");
  for (const int local_node : {-1, 0, 1, 2}) {
    options_.local_node = local_node;
    auto watchers = this->watchers();
    EXPECT_EQ(watchers.metrics_file() != nullptr, local_node <= 0) << local_node;
  }
}

TEST_F(JobWatchersTest, EachIsToldAndTakesWhatIsItsOwn) {
  options_.metrics_file = folder_.file("drun.prom");
  options_.summary = true;
  auto watchers = this->watchers();
  ASSERT_NE(watchers.summary(), nullptr);
  watchers.set_link(&store_);
  own_.round = 1;
  const GroupNews started = rig_.start(place_of(0, 2));
  watchers.on_workers(started);
  EXPECT_THAT(store_.take(), ElementsAre("watch drun/train/usage/*", "watch drun/train/*"));
  while (!std::filesystem::exists(options_.metrics_file) && io_.run_one_for(kPatience) > 0) {
  }
  EXPECT_TRUE(std::filesystem::exists(options_.metrics_file)) << "at the start, not only later";
  EXPECT_TRUE(watchers.on_event(WatchSnapshot{UsageSummary::kWatch, {}}));
  EXPECT_TRUE(watchers.on_event(WatchSnapshot{MetricsFile::kWatch, {}}));
  EXPECT_FALSE(watchers.on_event(WatchSnapshot{1, {}})) << "the participant's";
  watchers.close();
  io_.restart();
  io_.run();
}

}  // namespace
}  // namespace drun::launcher
