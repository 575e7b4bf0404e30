// What the ends of a job's replica groups mean.
#include "launcher/local_nodes/group_ends.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "support/exit_statuses.hpp"

namespace drun::launcher {
namespace {

using test::exited;
using test::killed;

TEST(GroupEndsTest, NoGroupIsStoppedForAnother) {
  GroupEnds ends(3, false);
  const auto first = ends.on_end(1, exited(7), false);
  EXPECT_EQ(first.line, "replica group 1 of 3 has failed for good (exit code 7); 2 groups go on");
  EXPECT_FALSE(first.stop_all);
  EXPECT_EQ(first.stop_one, -1);
  EXPECT_EQ(ends.on_end(0, exited(0), false).line, "");
  EXPECT_EQ(ends.left(), 1);
  EXPECT_EQ(ends.on_end(2, exited(139), false).line,
            "replica group 2 of 3 has failed for good (killed by SIGSEGV)");
  EXPECT_EQ(ends.left(), 0);
  EXPECT_EQ(ends.exit_code(), 7) << "that of the first";
}

TEST(GroupEndsTest, AGroupWhoseDrunWasKilledHasFailed) {
  GroupEnds ends(2, false);
  EXPECT_EQ(ends.on_end(0, killed(SIGKILL), false).line,
            "replica group 0 of 2 has failed for good (killed by SIGKILL); 1 group goes on");
  EXPECT_EQ(ends.on_end(1, exited(0), false).line, "");
  EXPECT_EQ(ends.exit_code(), 128 + SIGKILL);
}

TEST(GroupEndsTest, AllThatSucceedAreASuccess) {
  GroupEnds ends(2, false);
  (void)ends.on_end(0, exited(0), false);
  (void)ends.on_end(1, exited(0), false);
  EXPECT_EQ(ends.exit_code(), 0);
}

TEST(GroupEndsTest, TheLighthouseEndsWithTheLastGroup) {
  GroupEnds ends(2, true);
  EXPECT_EQ(ends.left(), 3);
  EXPECT_EQ(ends.on_end(0, exited(0), false).stop_one, -1);
  EXPECT_EQ(ends.on_end(1, exited(0), false).stop_one, 2);
  EXPECT_EQ(ends.left(), 1);
  EXPECT_EQ(ends.on_end(2, exited(143), false).line, "") << "it was told to";
  EXPECT_EQ(ends.left(), 0);
  EXPECT_EQ(ends.exit_code(), 0) << "it is no part of the job's success";
}

TEST(GroupEndsTest, TheDeathOfTheLighthouseIsToldAndStopsNobody) {
  GroupEnds ends(2, true);
  const auto death = ends.on_end(2, exited(3), false);
  EXPECT_EQ(death.line, "the lighthouse has ended (exit code 3), and is not started again");
  EXPECT_FALSE(death.stop_all);
  (void)ends.on_end(0, exited(0), false);
  EXPECT_EQ(ends.on_end(1, exited(0), false).stop_one, -1) << "nobody is there to be stopped";
  EXPECT_EQ(ends.exit_code(), 0);
}

TEST(GroupEndsTest, WhatAStopEndsIsNoNews) {
  GroupEnds ends(2, true);
  ends.on_stop();
  EXPECT_EQ(ends.on_end(0, exited(143), false).line, "");
  EXPECT_EQ(ends.on_end(2, exited(143), false).line, "");
  EXPECT_EQ(ends.on_end(1, exited(143), false).line, "");
  EXPECT_EQ(ends.exit_code(), 143);
  GroupEnds hung(1, false);
  hung.on_stop();
  hung.on_killed(SIGINT);
  EXPECT_EQ(hung.on_end(0, killed(SIGKILL), false).line, "");
  EXPECT_TRUE(hung.killed());
}

}  // namespace
}  // namespace drun::launcher
