#include "launcher/telling/own_log.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;

class OwnLogTest : public testing::Test {
 protected:
  ~OwnLogTest() override {
    log::redirect({});
    log::use_color(false);
    log::configure("drun", log::Level::Warning);
  }
  // What of four lines is said.
  std::vector<std::string> said() {
    std::vector<std::string> lines;
    configure_log(options_, "drun");
    log::redirect([&lines](std::string line) { lines.push_back(std::move(line)); });
    log::debug("detail");
    log::info("news");
    log::warning("doubt");
    log::error("end");
    log::redirect({});
    return lines;
  }

  Options options_;
};

TEST_F(OwnLogTest, HowMuchIsSaidIsTheUsersChoice) {
  EXPECT_THAT(said(), ElementsAre("drun: news\n", "drun: warning: doubt\n", "drun: error: end\n"));
  options_.quiet = true;
  EXPECT_THAT(said(), ElementsAre("drun: error: end\n"));
  options_.quiet = false;
  options_.verbose = true;
  EXPECT_EQ(said().size(), 4U);
}

TEST_F(OwnLogTest, ColoursGoByTheEnvironmentOfTheJob) {
  options_.output.color = ColorChoice::Always;
  configure_log(options_, "drun");
  EXPECT_TRUE(log::uses_color());
  options_.output.color = ColorChoice::Never;
  configure_log(options_, "drun");
  EXPECT_FALSE(log::uses_color());
  options_.output.color = ColorChoice::Auto;
  options_.inherited = {"TERM=xterm", "NO_COLOR=1"};
  configure_log(options_, "drun");
  EXPECT_FALSE(log::uses_color());
}

}  // namespace
}  // namespace drun::launcher
