#include "base/given_file.hpp"

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun {
namespace {

using ::testing::HasSubstr;

std::string with(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

TEST(GivenFileTest, FilesAndPipesAreReadToTheirEnd) {
  const test::TemporaryDirectory folder;
  const std::string text(100'000, 'x');
  EXPECT_EQ(read_given_file(with(folder.file("file"), text)).value(), text);
  EXPECT_EQ(read_given_file(with(folder.file("empty"), "")).value(), "");
  // As --hostfile <(scontrol show hostnames) has it.
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << text; });
  EXPECT_EQ(read_given_file(pipe).value(), text);
  writer.join();
}

TEST(GivenFileTest, WhatHasNoEndIsNotReadForEver) {
  const auto endless = read_given_file("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().what(), "it has more than 16777216 bytes");
}

TEST(GivenFileTest, APipeThatNobodyWritesToIsGivenUp) {
  const test::TemporaryDirectory folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto nothing = read_given_file(pipe, std::chrono::milliseconds(50));
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().what(), HasSubstr("read it to its end: no answer for "));
  std::ofstream release(pipe);  // the thread that was left behind ends
}

TEST(GivenFileTest, TheSystemSaysWhyAFileCannotBeRead) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(read_given_file(folder.file("none")).error().what(), "No such file or directory");
  EXPECT_EQ(read_given_file(folder.file(".")).error().what(), "Is a directory");
}

}  // namespace
}  // namespace drun
