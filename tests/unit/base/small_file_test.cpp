#include "base/small_file.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun {
namespace {

TEST(SmallFileTest, IsReadWholeUpToItsLimit) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("file");
  const std::string text(10'000, 'x');
  std::ofstream(path) << text;
  EXPECT_EQ(read_small_file(path), text);
  EXPECT_EQ(read_small_file(path, text.size()).value(), text);
  const auto more = read_small_file(path, text.size() - 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), std::errc::file_too_large);
  EXPECT_EQ(more.error().what(), "it has more than 9999 bytes");
}

TEST(SmallFileTest, TheSystemSaysWhyItCannotBeRead) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(read_small_file(folder.file("none")), std::nullopt);
  EXPECT_EQ(read_small_file(folder.file("none"), 1).error().what(), "No such file or directory");
  EXPECT_EQ(read_small_file(folder.file("."), 1).error().what(), "Is a directory");
}

// As the kernel's files: they are there, and take all or nothing.
TEST(SmallFileTest, IsWrittenIfItIsThere) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("file");
  EXPECT_FALSE(write_small_file(path, "1"));
  EXPECT_EQ(read_small_file(path), std::nullopt);
  std::ofstream(path) << "0";
  EXPECT_TRUE(write_small_file(path, "1"));
  EXPECT_EQ(read_small_file(path), "1");
  EXPECT_FALSE(write_small_file("/dev/full", "1"));
}

}  // namespace
}  // namespace drun
