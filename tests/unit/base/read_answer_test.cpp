#include "base/read_answer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "base/pipe.hpp"
#include "base/poll_until.hpp"
#include "base/write_all.hpp"

namespace drun {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMost = 1'000'000;

class ReadAnswerTest : public ::testing::Test {
 protected:
  void say(std::string_view text) { ASSERT_TRUE(write_all(pipe_.write.get(), text)); }
  Pipe pipe_ = make_pipe("make a pipe for a test");
};

TEST_F(ReadAnswerTest, AllOfItUntilTheEnd) {
  const std::string text(300'000, 'x');  // more than a pipe holds
  std::thread other([&] {
    say(text);
    pipe_.write.reset();
  });
  const auto answer = read_answer(pipe_.read.get(), kMost, kNoDeadline);
  other.join();
  ASSERT_TRUE(answer) << answer.error().what();
  EXPECT_EQ(*answer, text);
}

TEST_F(ReadAnswerTest, OneThatSaysNothingHasAnsweredToo) {
  pipe_.write.reset();
  const auto answer = read_answer(pipe_.read.get(), 0, steady_clock::time_point());
  ASSERT_TRUE(answer) << answer.error().what();
  EXPECT_EQ(*answer, "");
}

TEST_F(ReadAnswerTest, WithoutAnEndItIsNone) {
  say("half of it");
  ::fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK);
  const auto answer = read_answer(pipe_.read.get(), kMost, steady_clock::time_point());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), std::errc::timed_out);
  EXPECT_EQ(answer.error().what(), "it gives no answer");
}

TEST_F(ReadAnswerTest, IsNoLongerThanItMayBe) {
  say("four");
  pipe_.write.reset();
  EXPECT_EQ(read_answer(pipe_.read.get(), 4, kNoDeadline).value_or(""), "four");
  pipe_ = make_pipe("make a pipe for a test");
  say("fives");
  const auto answer = read_answer(pipe_.read.get(), 4, kNoDeadline);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), std::errc::message_size);
}

TEST_F(ReadAnswerTest, SaysWhyItCannotBeRead) {
  const FileDescriptor folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto answer = read_answer(folder.get(), kMost, kNoDeadline);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), std::errc::is_a_directory);
}

}  // namespace
}  // namespace drun
