#include "launcher/leaving/parent_shutdown.hpp"

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "drun/base/log.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr FlushProgress kUnread{false, true, false, {7, 7}};

class ParentShutdownTest : public testing::Test {
 protected:
  ParentShutdownTest() {
    log::redirect([this](std::string line) { said_.push_back(std::move(line)); });
  }
  ~ParentShutdownTest() override { log::redirect({}); }

  asio::io_context io_;
  FlushProgress progress_;
  std::vector<std::string> said_;
  std::vector<std::string> steps_;
  ParentShutdown shutdown_{
      io_,
      {[this](std::chrono::milliseconds) { steps_.emplace_back("drain"); },
       [this] { return progress_; }, [this] { steps_.emplace_back("close"); }},
      {[this] { steps_.emplace_back("sweep"); }, [this] { steps_.emplace_back("leave"); },
       [this] { steps_.emplace_back("gone"); }}};
};

TEST_F(ParentShutdownTest, SweepsThenFlushesThenIsGone) {
  shutdown_.on_swept();
  EXPECT_THAT(steps_, IsEmpty()) << "the agents run";
  shutdown_.on_outcome(7);
  EXPECT_THAT(steps_, ElementsAre("sweep"));
  shutdown_.on_outcome(8);
  shutdown_.on_swept();
  EXPECT_THAT(steps_, ElementsAre("sweep", "leave", "drain", "close", "gone"));
  shutdown_.on_swept();
  EXPECT_EQ(steps_.size(), 5U) << "once";
  EXPECT_EQ(shutdown_.exit_code(), 7);
}

TEST_F(ParentShutdownTest, WhoLeftNothingBehindIsSweptAtOnce) {
  std::vector<std::string> steps;
  std::optional<ParentShutdown> shutdown;
  shutdown.emplace(
      io_, FlushTarget{[](std::chrono::milliseconds) {}, [] { return FlushProgress{}; }, [] {}},
      ParentShutdown::Calls{[&] { shutdown->on_swept(); }, [] {},
                            [&] { steps.emplace_back("gone"); }});
  shutdown->on_outcome(0);
  EXPECT_THAT(steps, ElementsAre("gone"));
}

TEST_F(ParentShutdownTest, EachRequestAsksForMore) {
  EXPECT_EQ(shutdown_.signal(), 0);
  EXPECT_EQ(shutdown_.on_stop_signal(SIGINT), StopLevel::Ask);
  EXPECT_EQ(shutdown_.on_stop_signal(SIGTERM), StopLevel::Kill);
  EXPECT_EQ(shutdown_.signal(), SIGTERM);
  EXPECT_THAT(steps_, IsEmpty()) << "the agents end the job";
}

TEST_F(ParentShutdownTest, WhatOnlyRepeatsARequestAsksForNothing) {
  EXPECT_EQ(shutdown_.on_stop_signal(SIGTERM), StopLevel::Ask);
  EXPECT_EQ(shutdown_.on_stop_signal(SIGTERM), std::nullopt);
}

TEST_F(ParentShutdownTest, AReaderIsGivenUpForASignal) {
  progress_ = kUnread;
  shutdown_.on_outcome(0);
  shutdown_.on_swept();
  EXPECT_THAT(steps_, ElementsAre("sweep", "leave", "drain")) << "the reader is waited for";
  EXPECT_EQ(shutdown_.on_stop_signal(SIGINT), StopLevel::Ask);
  EXPECT_EQ(steps_.back(), "gone");
  EXPECT_THAT(said_,
              ElementsAre("drun: error: the rest of standard output is lost: received SIGINT\n"));
  EXPECT_EQ(shutdown_.exit_code(), exit_code_of_signal(SIGINT));
}

TEST_F(ParentShutdownTest, AfterARequestAReaderThatTakesNothingIsNotWaitedForLong) {
  progress_ = kUnread;
  EXPECT_EQ(shutdown_.on_stop_signal(SIGTERM), StopLevel::Ask);
  shutdown_.on_outcome(exit_code_of_signal(SIGTERM));
  shutdown_.on_swept();
  io_.run();
  EXPECT_EQ(steps_.back(), "gone");
  EXPECT_THAT(said_, ElementsAre("drun: error: the rest of standard output is lost: nothing was "
                                 "read for 1 s\n"));
}

TEST_F(ParentShutdownTest, LostOutputIsNoSuccess) {
  shutdown_.on_outcome(0);
  shutdown_.on_swept();
  shutdown_.on_output_lost();
  EXPECT_EQ(shutdown_.exit_code(), kDrunFailed);
}

}  // namespace
}  // namespace drun::launcher
