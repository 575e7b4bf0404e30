#include "base/log.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LogTest : public testing::Test {
 protected:
  void configure(log::Level level) {
    log::configure("prog", level);
    log::redirect([this](std::string line) { lines_.push_back(std::move(line)); });
  }
  ~LogTest() override {
    log::redirect({});
    log::configure("drun", log::Level::Warning);
  }

  std::vector<std::string> lines_;
};

TEST_F(LogTest, FormatsALineWithTheProgramsNameAndTheLevelsWord) {
  configure(log::Level::Debug);
  const std::string node = "node1";
  log::debug("round {}: {} nodes", 3, std::size_t{2});
  log::info("{} has joined", node);
  log::warning("port {}", std::uint16_t{29500});
  log::error("{}", "100% {}");
  EXPECT_THAT(lines_, ElementsAre("prog: round 3: 2 nodes\n", "prog: node1 has joined\n",
                                  "prog: warning: port 29500\n", "prog: error: 100% {}\n"));
}

TEST_F(LogTest, WhatItIsMadeOfDoesNotActOnATerminal) {
  configure(log::Level::Warning);
  log::warning("{} waits", std::string("evil\x1b[2J\a\nprog: error: forged\r\xc2\x9b\xff"));
  EXPECT_THAT(lines_, ElementsAre("prog: warning: evil\\x1b[2J\\x07\\nprog: error: forged\\x0d"
                                  "\\xc2\\x9b\\xff waits\n"));
}

TEST_F(LogTest, ErrorsAndWhatAsksForItArePaintedWhereColourIsWanted) {
  configure(log::Level::Info);
  log::error("{}", 1);
  log::write(log::Level::Warning, Ink::Silence, "{}", 2);
  log::use_color(true);
  EXPECT_TRUE(log::uses_color());
  log::error("{}", "a\033[0m");
  log::write(log::Level::Warning, Ink::Silence, "{}", 2);
  log::warning("{}", 3);
  log::use_color(false);
  EXPECT_THAT(lines_, ElementsAre("prog: error: 1\n", "prog: warning: 2\n",
                                  "prog: \033[31merror: a\\x1b[0m\033[0m\n",
                                  "prog: \033[33mwarning: 2\033[0m\n", "prog: warning: 3\n"));
}

TEST_F(LogTest, WhatIsBelowTheLevelIsNotShown) {
  configure(log::Level::Warning);
  log::info("{}", 1);
  log::write(log::Level::Debug, "{}", 2);
  EXPECT_THAT(lines_, IsEmpty());
  log::write(log::Level::Warning, "{}", 3);
  EXPECT_THAT(lines_, ElementsAre("prog: warning: 3\n"));
}

// Whoever takes the lines puts the time before all that it shows.
TEST_F(LogTest, TheTimeIsBeforeALineOnStderrOnly) {
  log::configure("prog", log::Level::Warning, true);
  testing::internal::CaptureStderr();
  log::warning("{}", 1);
  log::redirect([this](std::string line) { lines_.push_back(std::move(line)); });
  log::warning("{}", 2);
  log::redirect({});
  log::warning("{}", 3);
  const std::string time = "[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}[+-][0-9]{2}:[0-9]{2} ";
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex(time + "prog: warning: 1\n" + time + "prog: warning: 3\n"));
  EXPECT_THAT(lines_, ElementsAre("prog: warning: 2\n"));
}

}  // namespace
}  // namespace drun
