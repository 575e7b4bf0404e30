#include "base/poll_until.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "base/pipe.hpp"

namespace drun {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class PollUntilTest : public ::testing::Test {
 protected:
  Pipe pipe_ = make_pipe("make a pipe for a test");
  FileDescriptor& reader_ = pipe_.read;
  FileDescriptor& writer_ = pipe_.write;
};

TEST_F(PollUntilTest, ADeadlineThatIsOverLooksOnce) {
  EXPECT_FALSE(await_ready(reader_.get(), POLLIN, steady_clock::time_point()));
  EXPECT_TRUE(await_ready(writer_.get(), POLLOUT, steady_clock::time_point()));
}

TEST_F(PollUntilTest, WaitsUntilTheDeadline) {
  const auto deadline = steady_clock::now() + milliseconds(5);
  EXPECT_FALSE(await_ready(reader_.get(), POLLIN, deadline));
  EXPECT_GE(steady_clock::now(), deadline);
}

TEST_F(PollUntilTest, AnEndThatIsGoneIsReady) {
  writer_.reset();
  EXPECT_TRUE(await_ready(reader_.get(), POLLIN, kNoDeadline));
}

TEST_F(PollUntilTest, SaysWhichOfSeveralIsReady) {
  std::array<pollfd, 2> entries{{{reader_.get(), POLLIN, 0}, {writer_.get(), POLLOUT, 0}}};
  EXPECT_EQ(poll_until(entries, kNoDeadline), 1);
  EXPECT_EQ(entries[0].revents, 0);
  EXPECT_EQ(entries[1].revents, POLLOUT);
}

int interruptions = 0;

// A signal every millisecond, until the fifth makes the pipe readable.
TEST_F(PollUntilTest, ASignalDoesNotEndTheWait) {
  static int woken;
  interruptions = 0;
  woken = writer_.get();
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (++interruptions == 5) (void)!::write(woken, "x", 1);
  };
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  timer_t timer{};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR2;
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec each{{0, 1'000'000}, {0, 1'000'000}};
  ASSERT_EQ(::timer_settime(timer, 0, &each, nullptr), 0);
  EXPECT_TRUE(await_ready(reader_.get(), POLLIN, kNoDeadline));
  ::timer_delete(timer);
  ::sigaction(SIGUSR2, &before, nullptr);
  EXPECT_GE(interruptions, 5);
}

}  // namespace
}  // namespace drun
