#include "launcher/telling/shared_stop_reason.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

TEST(SharedStopReasonTest, AProcessThatWasForkedBeforeReadsIt) {
  SharedStopReason reason;
  EXPECT_FALSE(reason.get());
  int start[2];
  ASSERT_EQ(::pipe(start), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    char byte = 0;
    (void)!::read(start[0], &byte, 1);
    const auto told = reason.get();
    ::_exit(told && told->text == "an agent was killed" ? told->exit_code : 1);
  }
  reason.set("an agent was killed", 137);
  EXPECT_EQ(::write(start[1], "", 1), 1);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 137);
  ::close(start[0]);
  ::close(start[1]);
}

TEST(SharedStopReasonTest, ALongOneIsCut) {
  SharedStopReason reason;
  reason.set(std::string(1'000, 'x'), 7);
  const auto told = reason.get();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->text, std::string(200, 'x'));
}

}  // namespace
}  // namespace drun::launcher
