#include "base/child_answer.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun {
namespace {

using Answer = std::optional<std::string>;

TEST(ChildAnswerTest, IsItsWholeTextOrNone) {
  const std::string longer_than_a_pipe(1'000'000, 'x');
  for (const Answer& text :
       {Answer(""), Answer("two\nlines\n"), Answer(longer_than_a_pipe), Answer()})
    EXPECT_EQ(answer_of_child([&] { return text; }, test::kPatience), text);
}

// Whatever a driver does to it; and nothing is left of it.
TEST(ChildAnswerTest, OneThatDiesOrHangsGivesNone) {
  const auto dies = []() -> Answer { ::raise(SIGKILL), ::_exit(1); };
  EXPECT_EQ(answer_of_child(dies, test::kPatience), std::nullopt);
  const auto hangs = []() -> Answer {
    for (;;)
      ::pause();
  };
  EXPECT_EQ(answer_of_child(hangs, std::chrono::milliseconds(1)), std::nullopt);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace drun
