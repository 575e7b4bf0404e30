// Signals of a real process: which are caught, and when they are heard.
#include "launcher/signals/agent_signals.hpp"

#include <signal.h>

#include <vector>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "support/in_child.hpp"

namespace drun::launcher {
namespace {

using process::test::in_child;

void block(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

TEST(CaughtSignalsTest, WhatCameBeforeTheStartIsHeardThen) {
  EXPECT_EQ(in_child([] {
              block(SIGTERM);
              ::raise(SIGTERM);
              asio::io_context io;
              CaughtSignals signals(io, {SIGTERM, SIGHUP, SIGTERM});
              ::raise(SIGHUP);
              std::vector<int> heard;
              signals.start([&](int signal) {
                heard.push_back(signal);
                if (heard.size() == 2) signals.cancel();
              });
              io.run();
              return heard.size() == 2 && heard[0] != heard[1] ? 0 : 1;
            }),
            0);
}

TEST(CaughtSignalsTest, WhatComesAfterTheEndDoesNotKill) {
  EXPECT_EQ(in_child([] {
              asio::io_context io;
              { const CaughtSignals signals(io, {SIGTERM}); }
              ::raise(SIGTERM);
              return 7;
            }),
            7);
}

TEST(IgnoredSignalsTest, OnlyAHangUpIsLeftIgnored) {
  EXPECT_EQ(in_child([] {
              for (const int signal : {SIGHUP, SIGINT, SIGTSTP})
                ::signal(signal, SIG_IGN);
              if (!ignored_by_nohup(SIGHUP) || ignored_by_nohup(SIGINT)) return 1;
              return ignored_from_start(SIGINT) && !ignored_from_start(SIGTERM) ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace drun::launcher
