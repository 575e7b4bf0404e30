// What the hosts of a job print and say, through a relay into two pipes.
#include "launcher/starter/host_outputs.hpp"

#include <signal.h>

#include <cstdint>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/report/gathered_ranks.hpp"
#include "support/output_rig.hpp"

namespace drun::launcher {
namespace {

using hosts::FrameType;
using test::read_until;
using testing::ElementsAre;
using testing::IsEmpty;

class HostOutputsTest : public testing::Test {
 protected:
  HostOutputsTest() {
    ::signal(SIGPIPE, SIG_IGN);
    for (int host = 0; host < 2; ++host)
      outputs_.add_host();
    relay_.start();
  }
  void take(FrameType type, std::uint32_t host, const std::string& payload) {
    outputs_.take({type, host, payload});
    io_.restart();
    io_.run();  // until the relay has it
  }
  // Whether stderr shows exactly this, from the beginning.
  [[nodiscard]] bool says(const std::string& expected) {
    return read_until(err_.read.get(), said_, [&] { return said_.size() >= expected.size(); }) &&
           said_ == expected;
  }

  test::Pipe out_;
  test::Pipe err_;
  std::string said_;
  std::vector<hosts::Frame> told_;
  OutputRelay relay_{out_.write.get(), err_.write.get(), {}};
  asio::io_context io_{1};
  HostOutputs outputs_{io_, relay_, false,
                       [this](const hosts::Frame& frame) { told_.push_back(frame); }};
};

TEST_F(HostOutputsTest, WhatSeveralHostsSayIsShownOnce) {
  take(FrameType::Words, 0, "drun: both\n");
  EXPECT_TRUE(says("drun: both\n")) << said_;
  take(FrameType::Words, 1, "drun: both\n");
  take(FrameType::Words, 1, "drun: the second alone\n");
  EXPECT_TRUE(says("drun: both\ndrun: the second alone\n")) << said_;
  take(FrameType::Words, 1, "drun: both\n");  // once more than the other
  EXPECT_TRUE(says("drun: both\ndrun: the second alone\ndrun: both\n")) << said_;
}

// Whether it is shown or not, the host may send on.
TEST_F(HostOutputsTest, WhatIsNotShownCountsAsTaken) {
  const std::string words(hosts::kTakenStep - 1, 'x');
  take(FrameType::Words, 0, words + "\n");
  EXPECT_THAT(told_, ElementsAre(hosts::Frame{FrameType::ErrorTaken, 0,
                                              std::to_string(hosts::kTakenStep)}));
  told_.clear();
  take(FrameType::Words, 1, words + "\n");
  EXPECT_THAT(told_, ElementsAre(hosts::Frame{FrameType::ErrorTaken, 1,
                                              std::to_string(hosts::kTakenStep)}));
  told_.clear();
  take(FrameType::Output, 1, "y\n");
  EXPECT_THAT(told_, IsEmpty()) << "so little is not worth a word";
}

// As of `drun -H ... | less`.
TEST_F(HostOutputsTest, TheReportOfTheEndDoesNotWaitForAReaderOfStdout) {
  take(FrameType::ErrorOutput, 0, "a worker's\n");
  take(FrameType::Words, 1, kept_for_last("drun: job failed\n"));
  ASSERT_TRUE(says("a worker's\n")) << said_;
  outputs_.take({FrameType::Output, 0, "x\n"});  // nobody takes it
  EXPECT_FALSE(outputs_.progress().all);
  EXPECT_TRUE(says("a worker's\ndrun: job failed\n")) << said_;
  outputs_.give_up();
  io_.restart();
  io_.run();
  EXPECT_TRUE(relay_.finish());
  EXPECT_TRUE(says("a worker's\ndrun: job failed\n")) << "once: " << said_;
}

TEST_F(HostOutputsTest, TheReportOfTheEndIsSaidThoughTheRestIsGivenUp) {
  take(FrameType::Words, 1, kept_for_last("drun: job failed\n"));
  outputs_.take({FrameType::ErrorOutput, 0, "a worker's\n"});  // nobody takes it
  EXPECT_FALSE(outputs_.progress().all);
  outputs_.give_up();
  io_.restart();
  io_.run();
  (void)relay_.finish();
  EXPECT_TRUE(read_until(err_.read.get(), said_, [this] {
    return said_.find("drun: job failed\n") != std::string::npos;
  })) << said_;
}

}  // namespace
}  // namespace drun::launcher
