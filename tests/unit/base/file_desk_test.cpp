#include "base/file_desk.hpp"

#include <sys/resource.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun {
namespace {

using test::kPatience;

TEST(FileDeskTest, AnswersComeFromTheLoopAndEachIsFollowedByTheCall) {
  asio::io_context io;
  std::string heard;
  std::optional<FileDesk> desk;
  int served = 0;
  desk.emplace(io, [&] {
    heard += "served ";
    if (++served == 2) desk->cancel();
  });
  for (const char* const name : {"first ", "second "})
    desk->ask<const char*>(
        kPatience * 2, [name] { return name; },
        [&](const Result<const char*>& result) { heard += *result; });
  EXPECT_EQ(heard, "");
  io.run_for(kPatience);
  EXPECT_EQ(heard, "first served second served ");
}

TEST(FileDeskTest, WorkThatHangsIsGivenUpInTheLoop) {
  asio::io_context io;
  std::promise<void> answer;
  std::optional<Result<int>> heard;
  std::optional<FileDesk> desk;
  desk.emplace(io, [&] {
    if (heard) desk->cancel();
  });
  desk->ask<int>(
      std::chrono::milliseconds(2),
      [answered = answer.get_future().share()] {
        answered.wait();
        return 1;
      },
      [&](Result<int> result) { heard = std::move(result); });
  io.run_for(kPatience);
  answer.set_value();
  ASSERT_TRUE(heard);
  ASSERT_FALSE(*heard);
  EXPECT_EQ(heard->error().code(), std::errc::timed_out);
}

// The loop goes on, and so does the desk when there are descriptors again.
TEST(FileDeskTest, WithoutADescriptorWorkFails) {
  asio::io_context io;
  const DeadlineTimer takes_what_the_loop_needs(io, [] {});
  std::string heard;
  std::optional<FileDesk> desk;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  desk.emplace(io, [&] {
    if (heard.size() == 2) desk->cancel();
  });
  const auto ask = [&] {
    desk->ask<char>(
        kPatience * 2, [] { return '+'; },
        [&](const Result<char>& result) {
          if (result) {
            heard += *result;
            return;
          }
          heard += '-';
          EXPECT_EQ(result.error().code(), std::errc::too_many_files_open);
          EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        });
  };
  ask();
  io.run_for(kPatience / 10);
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(heard, "-");
  io.restart();
  ask();
  io.run_for(kPatience);
  EXPECT_EQ(heard, "-+");
}

// Also if that happens while an answer is being given, which is where an agent ends.
TEST(FileDeskTest, ACancelledOneKeepsNoLoopRunning) {
  asio::io_context io;
  std::optional<FileDesk> desk;
  desk.emplace(io, [&] { desk->cancel(); });
  bool answered = false;
  desk->ask<int>(
      kPatience * 2, [] { return 1; }, [&](const Result<int>&) { answered = true; });
  io.run_for(kPatience);
  EXPECT_TRUE(answered);
  EXPECT_TRUE(io.stopped());
}

TEST(FileDeskTest, OneThatIsCancelledWhileItWorksKeepsNoneEither) {
  asio::io_context io;
  std::promise<void> answer;
  FileDesk desk(io, [] {});
  desk.ask<int>(
      kPatience * 2,
      [answered = answer.get_future().share()] {
        answered.wait();
        return 1;
      },
      [](const Result<int>&) {});
  desk.cancel();
  io.poll();
  EXPECT_TRUE(io.stopped());
  answer.set_value();
}

}  // namespace
}  // namespace drun
