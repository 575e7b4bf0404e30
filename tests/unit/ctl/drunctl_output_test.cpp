#include <string>

#include <gtest/gtest.h>

#include "ctl/drunctl.hpp"

namespace drun::ctl {
namespace {

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::to_string(i) + "\n";
  return text;
}

TEST(FittedTest, WhatASmallerScreenHasNoRoomForIsCounted) {
  EXPECT_EQ(fitted(lines(4), {5, 80}), lines(4)) << "the cursor has the last row";
  EXPECT_EQ(fitted(lines(5), {5, 80}), lines(3) + "... 2 more lines\n");
  EXPECT_EQ(fitted(lines(500), {24, 80}), lines(22) + "... 478 more lines\n");
}

TEST(FittedTest, ALongLineTakesSeveralRows) {
  const std::string wide = std::string(20, 'x') + "\n";
  EXPECT_EQ(fitted(wide + wide, {5, 10}), wide + wide);
  EXPECT_EQ(fitted(wide + lines(3), {5, 10}), wide + lines(1) + "... 2 more lines\n");
  EXPECT_EQ(fitted(lines(1) + std::string(21, 'x') + "\n", {4, 10}),
            lines(1) + "... 1 more line\n");
}

TEST(FittedTest, WhereNoSizeIsKnownAllOfItIsShown) {
  EXPECT_EQ(fitted(lines(99), {0, 0}), lines(99));
  EXPECT_EQ(fitted("", {24, 80}), "");
}

}  // namespace
}  // namespace drun::ctl
