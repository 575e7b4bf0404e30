#include "base/signal_block.hpp"

#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

namespace drun {
namespace {

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return ::sigismember(&now, signal) == 1;
}

TEST(SignalBlockTest, BlocksWhileItLivesAndNoLonger) {
  {
    const SignalBlock block;
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGSEGV, SIGRTMAX})
      EXPECT_TRUE(is_blocked(signal)) << signal;
    { const SignalBlock inner; }
    EXPECT_TRUE(is_blocked(SIGTERM)) << "still the outer one's";
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
}

TEST(SignalBlockTest, WhatWasBlockedBeforeStaysBlocked) {
  sigset_t one;
  sigset_t before;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &one, &before);
  { const SignalBlock block; }
  EXPECT_TRUE(is_blocked(SIGUSR2));
  EXPECT_FALSE(is_blocked(SIGUSR1));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(SignalBlockTest, AnExceptionEndsIt) {
  try {
    const SignalBlock block;
    throw std::runtime_error("no thread to be had");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(is_blocked(SIGTERM));
  }
}

TEST(SignalBlockTest, AThreadStartedMeanwhileHasNone) {
  bool blocked = false;
  std::thread thread;
  {
    const SignalBlock block;
    thread = std::thread([&] { blocked = is_blocked(SIGTERM); });
  }
  EXPECT_FALSE(is_blocked(SIGTERM));
  thread.join();
  EXPECT_TRUE(blocked);
}

}  // namespace
}  // namespace drun
