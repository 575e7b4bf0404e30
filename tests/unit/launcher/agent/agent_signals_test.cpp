#include "launcher/agent/agent_signals.hpp"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

Options with_signals() {
  Options options;
  options.signals_to_handle = {SIGTERM, SIGUSR2};
  options.forward_signals = {SIGUSR1, SIGTSTP};
  return options;
}

TEST(SignalMeaningTest, WhatASignalAsksFor) {
  const Options options = with_signals();
  EXPECT_EQ(meaning_of(SIGWINCH, options), SignalMeaning::Resize);
  EXPECT_EQ(meaning_of(SIGTSTP, options), SignalMeaning::Suspend)
      << "even if it is to be forwarded";
  EXPECT_EQ(meaning_of(SIGUSR1, options), SignalMeaning::Forward);
  EXPECT_EQ(meaning_of(SIGTERM, options), SignalMeaning::Stop);
  EXPECT_EQ(meaning_of(SIGINT, options), SignalMeaning::Stop) << "whatever else is caught";
}

TEST(SignalMeaningTest, OnlySigtermTakesANodeOut) {
  Options options = with_signals();
  EXPECT_FALSE(takes_node_out(SIGTERM, options));
  options.leave_on_sigterm = true;
  EXPECT_TRUE(takes_node_out(SIGTERM, options));
  EXPECT_FALSE(takes_node_out(SIGINT, options));
  EXPECT_FALSE(takes_node_out(SIGUSR2, options));
}

TEST(SignalMeaningTest, AnAgentCatchesWhatTheUserNamedAndTheTerminalSends) {
  EXPECT_THAT(signals_of_agent(with_signals()),
              testing::IsSupersetOf({SIGTERM, SIGUSR2, SIGUSR1, SIGTSTP, SIGWINCH}));
  EXPECT_THAT(signals_of_agent(Options()), testing::Not(testing::Contains(SIGUSR1)));
}

}  // namespace
}  // namespace drun::launcher
