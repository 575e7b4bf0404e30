#include "launcher/telling/shared_log_dedup.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(SharedLogDedupTest, AProcessMayRepeatItself) {
  SharedLogDedup said;
  EXPECT_TRUE(said.first_to_say("a"));
  EXPECT_TRUE(said.first_to_say("a"));
  EXPECT_TRUE(said.first_to_say("b"));
}

TEST(SharedLogDedupTest, OfSeveralProcessesTheFirstSaysIt) {
  SharedLogDedup said;
  const auto in_child = [&said](const std::string& text) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(said.first_to_say(text) ? 1 : 0);
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WEXITSTATUS(status) == 1;
  };
  EXPECT_TRUE(in_child("stopping"));
  EXPECT_FALSE(in_child("stopping"));
  EXPECT_FALSE(said.first_to_say("stopping"));
  EXPECT_TRUE(said.first_to_say("stopping")) << "for the second time";
  EXPECT_TRUE(in_child("stopped"));
}

TEST(SharedLogDedupTest, ATableThatIsFullHidesNothing) {
  SharedLogDedup said;
  for (int i = 0; i < 20'000; ++i)
    EXPECT_TRUE(said.first_to_say(std::to_string(i)));
}

// The agent's thread speaks, and so does that of its store.
TEST(SharedLogDedupTest, TwoThreadsOfAProcessMaySpeakAtOnce) {
  SharedLogDedup said;
  const auto speak = [&said](const std::string& who) {
    for (int i = 0; i < 1000; ++i)
      EXPECT_TRUE(said.first_to_say(who + std::to_string(i)));
  };
  std::thread other(speak, "store ");
  speak("agent ");
  other.join();
}

}  // namespace
}  // namespace drun::launcher
