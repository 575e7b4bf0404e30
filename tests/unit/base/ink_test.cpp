#include "base/ink.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(InkTest, EachHasItsColourAndLeavesNone) {
  EXPECT_EQ(painted("job failed", Ink::Cause), "\033[31mjob failed\033[0m");
  EXPECT_EQ(painted("silent", Ink::Silence), "\033[33msilent\033[0m");
  EXPECT_EQ(painted("spare", Ink::Aside), "\033[2mspare\033[0m");
  EXPECT_EQ(painted("spare", Ink::Plain), "spare");
  EXPECT_EQ(painted("", Ink::Cause), "");
}

TEST(WantsColorTest, AutoIsForATerminalThatKnowsIt) {
  const auto automatic = [](bool terminal, std::optional<std::string> term,
                            std::optional<std::string> no_color = {}) {
    return wants_color(ColorChoice::Auto, terminal, term, no_color);
  };
  EXPECT_TRUE(automatic(true, "xterm-256color"));
  EXPECT_FALSE(automatic(false, "xterm-256color"));
  EXPECT_FALSE(automatic(true, "dumb"));
  EXPECT_FALSE(automatic(true, ""));
  EXPECT_FALSE(automatic(true, std::nullopt));
  EXPECT_FALSE(automatic(true, "xterm", "1"));
  EXPECT_FALSE(automatic(true, "xterm", "0")) << "whatever its value";
  EXPECT_TRUE(automatic(true, "xterm", "")) << "empty is as if it was not set";
}

TEST(WantsColorTest, WhatTheUserAsksForWinsOverAll) {
  for (const bool terminal : {false, true}) {
    EXPECT_TRUE(wants_color(ColorChoice::Always, terminal, "dumb", "1"));
    EXPECT_FALSE(wants_color(ColorChoice::Never, terminal, "xterm", std::nullopt));
  }
}

}  // namespace
}  // namespace drun
