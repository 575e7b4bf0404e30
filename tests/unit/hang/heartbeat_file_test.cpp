#include "hang/heartbeat_file.hpp"

#include <sys/stat.h>

#include <string>

#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::hang {
namespace {

Heartbeat parsed(std::string_view text) {
  Heartbeat heartbeat;
  parse_heartbeat(text, heartbeat);
  return heartbeat;
}

TEST(HeartbeatFileTest, TheLastLineSaysTheStep) {
  EXPECT_EQ(parsed("7").step, 7);
  EXPECT_EQ(parsed("7\n").step, 7);
  EXPECT_EQ(parsed("6\n7\n").step, 7);
  EXPECT_EQ(parsed(" 8 \r\n").step, 8);
  EXPECT_EQ(parsed("-1").step, -1);
  EXPECT_EQ(parsed("").step, std::nullopt);
  EXPECT_EQ(parsed("step 7\n").step, std::nullopt);
  EXPECT_EQ(parsed("99999999999999999999").step, std::nullopt);
  EXPECT_FALSE(parsed("7").last);
  EXPECT_TRUE(parsed("7\nend\n").last);
  EXPECT_FALSE(parsed("end\n8\n").last);
}

TEST(HeartbeatFileTest, WhatWasWrittenIsReadAndEachTimeIsAnother) {
  const test::TempDir folder;
  const std::string file = folder.path() / "heartbeat";
  EXPECT_FALSE(read_heartbeat(file));
  ASSERT_TRUE(write_heartbeat(file, "41"));
  const auto first = read_heartbeat(file);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step, 41);
  EXPECT_EQ(read_heartbeat(file), first);
  ASSERT_TRUE(write_heartbeat(file, "41"));
  EXPECT_NE(read_heartbeat(file), first);
  ASSERT_TRUE(write_heartbeat(file, kLastHeartbeat));
  EXPECT_TRUE(read_heartbeat(file)->last);
}

TEST(HeartbeatFileTest, OfAFileThatGrowsTheEndCounts) {
  const test::TempDir folder;
  std::string text;
  for (int step = 0; step <= 500; ++step)
    text += std::to_string(step) + "\n";
  const auto read = read_heartbeat(folder.write("heartbeat", text));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 500);
}

TEST(HeartbeatFileTest, WhatIsNoFileIsNoHeartbeat) {
  const test::TempDir folder;
  const std::string pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(read_heartbeat(pipe));
  EXPECT_FALSE(read_heartbeat(folder.path()));
}

TEST(HeartbeatFileTest, AnErrorNamesTheFile) {
  const test::TempDir folder;
  const std::string file = folder.path() / "gone" / "heartbeat";
  const Status written = write_heartbeat(file, "1");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().what().find(file), std::string::npos) << written.error().what();
}

}  // namespace
}  // namespace drun::hang
