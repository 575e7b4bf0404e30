#include "launcher/look/child_output.hpp"

#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

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

// What it has started is in its group.
TEST(ChildOutputTest, StoppedItIsGoneWithItsGroup) {
  const drun::test::TemporaryDirectory folder;
  const std::string fifo = folder.file("up");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ChildProgram program = shell("sh -c 'exec 3> \"$0\"; echo up >&3; sleep 1000' \"$0\" & wait");
  program.arguments.push_back(fifo);
  program.own_group = true;
  ChildStop stop;
  std::optional<Result<std::string>> said;
  std::thread thread([&] { said = output_of(program, Clock::now() + 4 * kPatience, stop); });
  std::ifstream up(fifo);
  std::string line;
  EXPECT_TRUE(std::getline(up, line));
  stop.stop();
  EXPECT_FALSE(std::getline(up, line)) << "ends when all that it has started is gone";
  thread.join();
  EXPECT_FALSE(*said);
  EXPECT_EQ(output_of(program, Clock::now() + kPatience, stop).error().code(),
            std::errc::operation_canceled)
      << "and none is started any more";
  stop.stop();
}

}  // namespace
}  // namespace drun::launcher
