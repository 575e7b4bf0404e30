#include "launcher/process/kill_limit.hpp"

#include <gtest/gtest.h>

namespace drun::process {
namespace {

using namespace std::chrono_literals;

constexpr KillLimit::Time kStart{};

void sweep(KillLimit& limit, int times) {
  for (int i = 0; i < times; ++i)
    limit.on_sweep();
}

TEST(KillLimitTest, WhatHangsGetsTheLimitOnce) {
  KillLimit limit(kStart, 5s);
  sweep(limit, KillLimit::kIdleSweeps);
  EXPECT_FALSE(limit.is_over(kStart + 4999ms));
  EXPECT_TRUE(limit.is_over(kStart + 5s));
}

TEST(KillLimitTest, WhatStillDiesGetsItTwice) {
  KillLimit limit(kStart, 5s);
  for (int death = 0; death < 5; ++death) {
    sweep(limit, KillLimit::kIdleSweeps - 1);
    limit.on_death();
  }
  EXPECT_FALSE(limit.is_over(kStart + 9999ms));
  EXPECT_TRUE(limit.is_over(kStart + 10s));
}

TEST(KillLimitTest, WhatDiesNoMoreHangsFromThen) {
  KillLimit limit(kStart, 5s);
  sweep(limit, 100);
  limit.on_death();
  sweep(limit, KillLimit::kIdleSweeps - 1);
  EXPECT_FALSE(limit.is_over(kStart + 7s));
  limit.on_sweep();
  EXPECT_TRUE(limit.is_over(kStart + 7s));
}

}  // namespace
}  // namespace drun::process
