#include "launcher/leaving/output_flush.hpp"

#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/base/log.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr FlushProgress kUnread{false, true, false, {7, 7}};

class OutputFlushTest : public testing::Test {
 protected:
  OutputFlushTest() {
    log::redirect([this](std::string line) { said_.push_back(std::move(line)); });
  }
  ~OutputFlushTest() override { log::redirect({}); }

  void start(int exit_code, bool told_to_stop) {
    flush_.start(exit_code, told_to_stop, [this](bool lost) { ends_.push_back(lost); });
  }

  asio::io_context io_;
  FlushProgress progress_;
  int drained_ = 0;
  int given_up_ = 0;
  std::vector<std::string> said_;
  std::vector<bool> ends_;  // whether output was lost
  OutputFlush flush_{io_,
                     {[this](std::chrono::milliseconds) { ++drained_; },
                      [this] { return progress_; }, [this] { ++given_up_; }}};
};

TEST_F(OutputFlushTest, EndsAtOnceIfEverythingIsWritten) {
  start(0, false);
  EXPECT_THAT(ends_, ElementsAre(false));
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(given_up_, 1);
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(io_.run(), 0U);
}

TEST_F(OutputFlushTest, WaitsForAReaderThatTakesTheRest) {
  progress_ = kUnread;
  start(0, false);
  EXPECT_THAT(ends_, IsEmpty());
  progress_ = {};
  io_.run();
  EXPECT_THAT(ends_, ElementsAre(false));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(OutputFlushTest, GivesUpAReaderThatTakesNothingAfterARequestToStop) {
  progress_ = kUnread;
  start(0, true);
  io_.run();
  EXPECT_THAT(ends_, ElementsAre(true));
  EXPECT_EQ(given_up_, 1);
  EXPECT_THAT(said_, ElementsAre("drun: error: the rest of standard output is lost: nothing was "
                                 "read for 1 s\n"));
}

TEST_F(OutputFlushTest, GivesTheReaderUpForASignal) {
  progress_ = kUnread;
  start(0, false);
  flush_.give_up("received SIGINT");
  EXPECT_THAT(ends_, ElementsAre(true));
  EXPECT_THAT(said_,
              ElementsAre("drun: error: the rest of standard output is lost: received SIGINT\n"));
  flush_.give_up("received SIGINT");
  io_.run();
  EXPECT_THAT(ends_, testing::SizeIs(1)) << "once";
}

TEST_F(OutputFlushTest, NothingIsLostIfTheReaderTookTheRestMeanwhile) {
  progress_ = kUnread;
  start(0, false);
  progress_ = {};
  flush_.give_up("received SIGINT");
  EXPECT_THAT(ends_, ElementsAre(false));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(OutputFlushTest, StartsOnceAndHasNothingToGiveUpBefore) {
  flush_.give_up("received SIGINT");
  EXPECT_EQ(given_up_, 0);
  start(0, false);
  start(0, false);
  EXPECT_THAT(ends_, testing::SizeIs(1));
  EXPECT_EQ(drained_, 1);
}

}  // namespace
}  // namespace drun::launcher
