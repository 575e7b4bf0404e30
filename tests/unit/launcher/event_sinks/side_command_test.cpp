#include "launcher/event_sinks/side_command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"
#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

std::chrono::steady_clock::time_point in_time() {
  return std::chrono::steady_clock::now() + test::kPatience;
}

class SideCommandTest : public testing::Test {
 protected:
  // What it wrote into "said", and how it ended.
  std::string run(const std::string& command, const std::vector<std::string>& environment = {}) {
    auto started = start_side_command("cd " + folder_.file("") + "; " + command, environment, -1);
    if (!started) return started.error().what();
    ending_ = end_side_command(*started, in_time());
    std::ostringstream said;
    said << std::ifstream(folder_.file("said")).rdbuf();
    return said.str();
  }
  test::TemporaryDirectory folder_;
  std::string ending_;
};

TEST_F(SideCommandTest, HasNoDescriptorOfOurs) {
  const FileDescriptor open_here(::open("/dev/null", O_RDONLY));
  const FileDescriptor high(::fcntl(open_here.get(), F_DUPFD, 100));
  // ls has one more, for the folder that it lists.
  EXPECT_EQ(run("ls /proc/self/fd | tr '\\n' ' ' >said"), "0 1 2 3 ");
  EXPECT_EQ(ending_, "");
}

TEST_F(SideCommandTest, ItsVariablesWinOverOursAndAreNoText) {
  ::setenv("DRUN_TEST_SIDE", "ours", 1);
  EXPECT_EQ(run("printf %s \"$DRUN_TEST_SIDE\" >said", {"DRUN_TEST_SIDE=$(touch x); `id` \" '"}),
            "$(touch x); `id` \" '");
  ::unsetenv("DRUN_TEST_SIDE");
  EXPECT_NE(::access(folder_.file("x").c_str(), F_OK), 0);
}

TEST_F(SideCommandTest, SaysHowItEnded) {
  (void)run("exit 3");
  EXPECT_EQ(ending_, "exit code 3");
  (void)run("kill -9 $$");
  EXPECT_EQ(ending_, "killed by SIGKILL");
}

TEST_F(SideCommandTest, IsToldToEndBeforeItIsKilled) {
  auto started = start_side_command("exec sleep 1000", {}, -1);
  ASSERT_TRUE(started);
  EXPECT_EQ(end_side_command(*started, std::chrono::steady_clock::now()), "killed by SIGTERM");
}

TEST_F(SideCommandTest, IsEndedWithAllThatItStarted) {
  const std::string ready = folder_.file("ready");
  auto started = start_side_command(
      "trap '' TERM; sleep 1000 & touch " + ready + "; sleep 1000; sleep 1000", {}, -1);
  ASSERT_TRUE(started);
  ASSERT_TRUE(test::eventually([&] { return ::access(ready.c_str(), F_OK) == 0; }));
  EXPECT_EQ(end_side_command(*started, std::chrono::steady_clock::now()), "killed by SIGKILL");
  EXPECT_TRUE(test::eventually([&] { return ::kill(-started->pid, 0) != 0; }));
}

}  // namespace
}  // namespace drun::launcher
