#include "launcher/views/usage_teller.hpp"

#include <unistd.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/usage.hpp"
#include "support/group_rig.hpp"
#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using test::place_of;
using testing::ElementsAre;
using testing::IsEmpty;

// A number that no process has: above the highest that the kernel gives.
constexpr pid_t kNobody = 1 << 30;

class UsageTellerTest : public testing::Test {
 protected:
  void ask() {
    teller_.ask([this](const std::string& text) { told_.push_back(text); });
  }
  std::string told() {
    ask();
    io_.restart();
    while (told_.empty() && io_.run_one_for(drun::test::kPatience) > 0) {
    }
    return told_.empty() ? "nothing" : std::exchange(told_, {}).front();
  }

  asio::io_context io_{1};
  test::GroupRig rig_;
  GpuLedger gpus_;
  std::vector<std::string> told_;
  UsageTeller teller_{io_, "node7", [this]() -> const WorkerGroup& { return rig_.group; }, gpus_};
};

TEST_F(UsageTellerTest, ANodeWithoutAPlaceHasNothingToTell) {
  EXPECT_EQ(told(), "");
}

TEST_F(UsageTellerTest, WhatHasEndedIsToldAndWhatRuns) {
  rig_.start(place_of(1, 2, 3), {kNobody, ::getpid()});
  (void)rig_.end(0, 0, {70, 80, 90, 100, 110});
  const auto usage = jobs::decode_usage(told());
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->round, 3);
  EXPECT_EQ(usage->group_rank, 1);
  EXPECT_EQ(usage->host, "node7");
  ASSERT_EQ(usage->ranks.size(), 2U);
  EXPECT_EQ(usage->ranks[0], (jobs::RankUsage{2, 70, 80, 90, 100, 110}));
  EXPECT_EQ(usage->ranks[1].rank, 3);
  EXPECT_GT(usage->ranks[1].peak_kib, 0) << "this process runs";
}

TEST_F(UsageTellerTest, WhatTheyHaveOfGpusIsToldAsFarAsItIsKnown) {
  rig_.start(place_of(1, 2, 3), {kNobody, ::getpid()});
  (void)rig_.end(0, 0, {70, 80, 90, 100, 110});
  gpus_.note(3, {true, {{kNobody, 2'048, -1}, {::getpid(), 4'096, 30}}});
  const auto usage = jobs::decode_usage(told());
  ASSERT_TRUE(usage);
  ASSERT_EQ(usage->ranks.size(), 2U);
  EXPECT_EQ(usage->ranks[0], (jobs::RankUsage{2, 70, 80, 90, 100, 110, 2'048}));
  EXPECT_EQ(usage->ranks[1].gpu_peak_kib, 4'096);
  EXPECT_EQ(usage->ranks[1].gpu_percent, 30);
}

TEST_F(UsageTellerTest, OneThatEndsMeanwhileIsLeftOut) {
  rig_.start(place_of(0, 1), {kNobody, ::getpid()});
  const auto usage = jobs::decode_usage(told());
  ASSERT_TRUE(usage);
  EXPECT_THAT(usage->ranks, ElementsAre(testing::Field(&jobs::RankUsage::rank, 1)));
}

TEST_F(UsageTellerTest, WhatNobodyKnowsIsNotTold) {
  rig_.start(place_of(0, 1), {kNobody, kNobody - 1});
  (void)rig_.end(0, 0, {});
  EXPECT_THAT(jobs::decode_usage(told()).value().ranks, IsEmpty());
}

TEST_F(UsageTellerTest, AfterTheRoundThereIsNothingToTell) {
  rig_.start(place_of(0, 1));
  (void)rig_.stop();
  EXPECT_EQ(told(), "");
}

TEST_F(UsageTellerTest, AfterCancelNobodyIsTold) {
  ask();
  teller_.cancel();
  io_.run();
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
