#include "launcher/signals/agent_signals.hpp"

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

TEST(SignalMeaningTest, SigquitShowsStacksUnlessTheUserOrTheMomentSaysOtherwise) {
  Options options = with_signals();
  EXPECT_EQ(meaning_of(SIGQUIT, options), SignalMeaning::Stacks);
  EXPECT_EQ(meaning_of(SIGQUIT, options, true), SignalMeaning::Stop);
  options.quit_ignored = true;
  EXPECT_EQ(meaning_of(SIGQUIT, options, true), SignalMeaning::Stacks);
  options.quit_ignored = false;
  options.quit_stops = true;
  EXPECT_EQ(meaning_of(SIGQUIT, options), SignalMeaning::Stop);
  options.quit_stops = false;
  options.forward_signals = {SIGQUIT};
  EXPECT_EQ(meaning_of(SIGQUIT, options), SignalMeaning::Forward);
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
}

// One that nobody thought of must not end drun without a word.
TEST(SignalMeaningTest, AnAgentCatchesWhateverWouldEndIt) {
  const auto caught = signals_of_agent(Options());
  EXPECT_THAT(caught, testing::IsSupersetOf({SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
                                             SIGTERM, SIGXCPU, SIGPROF, SIGRTMIN, SIGRTMAX}));
  for (const int signal : caught) {
    const auto meaning = meaning_of(signal, Options());
    EXPECT_EQ(meaning == SignalMeaning::Stop,
              signal != SIGWINCH && signal != SIGTSTP && signal != SIGQUIT)
        << signal;
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGCHLD, SIGPIPE, SIGTTIN, SIGKILL, SIGCONT})
    EXPECT_THAT(caught, testing::Not(testing::Contains(signal)));
  std::signal(SIGQUIT, SIG_IGN);
  EXPECT_THAT(signals_of_agent(Options()), testing::Contains(SIGQUIT)) << "it asks for stacks";
  std::signal(SIGQUIT, SIG_DFL);
  std::signal(SIGALRM, SIG_IGN);
  EXPECT_THAT(signals_of_agent(Options()), testing::Not(testing::Contains(SIGALRM)));
  std::signal(SIGALRM, SIG_DFL);
}

TEST(ForwardedSignalsTest, SaysWhoGetsIt) {
  ForwardedSignals signals;
  EXPECT_EQ(signals.describe(SIGUSR1, false, false), "received SIGUSR1: passed on to the workers");
  EXPECT_EQ(signals.describe(SIGUSR2, false, true),
            "received SIGUSR2: passed on to the workers of this node");
  EXPECT_EQ(signals.describe(SIGALRM, true, true),
            "received SIGALRM, but no worker runs here now: nobody gets it");
}

TEST(ForwardedSignalsTest, SaysSoAgainOnlyWhenSomethingElseBecomesOfIt) {
  ForwardedSignals signals;
  EXPECT_TRUE(signals.describe(SIGUSR1, true, false));
  EXPECT_FALSE(signals.describe(SIGUSR1, true, false));
  EXPECT_TRUE(signals.describe(SIGUSR2, true, false)) << "another signal";
  EXPECT_TRUE(signals.describe(SIGUSR1, false, false));
  EXPECT_FALSE(signals.describe(SIGUSR1, false, false));
  EXPECT_TRUE(signals.describe(SIGUSR1, true, false));
}

}  // namespace
}  // namespace drun::launcher
