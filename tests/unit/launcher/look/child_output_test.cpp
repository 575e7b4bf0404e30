#include "launcher/look/child_output.hpp"

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using drun::test::kPatience;
using Clock = std::chrono::steady_clock;

ChildProgram shell(const std::string& script) {
  ChildProgram program;
  program.path = "/bin/sh";
  program.arguments = {"sh", "-c", script};
  return program;
}

TEST(ChildOutputTest, WhatItReadsAndSays) {
  ChildProgram program = shell("read line; echo \"got $line\"");
  program.input = "a line\n";
  const auto output = output_of(program, Clock::now() + kPatience);
  ASSERT_TRUE(output) << output.error().what();
  EXPECT_EQ(*output, "got a line\n");
}

TEST(ChildOutputTest, AnErrorCallsItByItsName) {
  ChildProgram program = shell("exit 3");
  EXPECT_EQ(output_of(program, Clock::now() + kPatience).error().what(), "/bin/sh failed");
  program.name = "the helper";
  EXPECT_EQ(output_of(program, Clock::now() + kPatience).error().what(), "the helper failed");
  program.arguments.back() = "exec sleep 1000";
  EXPECT_EQ(output_of(program, Clock::now()).error().what(), "the helper: no answer in time");
}

TEST(ChildOutputTest, OneThatSaysTooMuchIsEnded) {
  ChildProgram program = shell("while :; do echo yes; done");
  program.most_output = 1'000;
  EXPECT_FALSE(output_of(program, Clock::now() + kPatience));
}

}  // namespace
}  // namespace drun::launcher
