#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using test::options_of;
using test::parse_line;
using testing::HasSubstr;

TEST(HeartbeatOptionsTest, EachLimitIsItsOwn) {
  const auto limits = options_of(
                          "--heartbeat-start-timeout 1s --heartbeat-timeout 2s "
                          "--heartbeat-end-timeout 3s ./train")
                          .heartbeats;
  EXPECT_EQ(limits.first, milliseconds(1'000));
  EXPECT_EQ(limits.next, milliseconds(2'000));
  EXPECT_EQ(limits.last, milliseconds(3'000));
  EXPECT_FALSE(options_of("./train").heartbeats.any());
}

TEST(HeartbeatOptionsTest, ThereMustBeFilesForThem) {
  for (const std::string name : {"start-", "", "end-"}) {
    const auto refused =
        parse_line("--heartbeat-" + name + "timeout 1s --log-dir /dev/null ./train");
    EXPECT_FALSE(refused.options);
    EXPECT_THAT(refused.text, HasSubstr("have no file for heartbeats"));
  }
}

TEST(HangOptionsTest, SaysForHowLongAndWhatFollows) {
  const auto options = options_of("--hang-timeout 1s --on-hang report ./train");
  EXPECT_EQ(options.hang_timeout, milliseconds(1'000));
  EXPECT_EQ(options.on_hang, OnHang::Report);
  EXPECT_EQ(options_of("--heartbeat-end-timeout 1s --on-hang stop ./train").on_hang, OnHang::Stop);
  EXPECT_EQ(options_of("--on-hang restart ./train").on_hang, OnHang::Restart);
  EXPECT_THAT(parse_line("--hang-timeout 999ms ./train").text, HasSubstr("at least a second"));
  EXPECT_THAT(parse_line("--on-hang stop ./train").text, HasSubstr("nobody looks for hangs"));
}

}  // namespace
}  // namespace drun::launcher
