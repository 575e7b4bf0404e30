#include "base/duration_text.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace drun {
namespace {

using namespace std::chrono_literals;

TEST(DurationTextTest, IsAsPreciseAsItMatters) {
  const std::pair<std::int64_t, const char*> cases[] = {
      {-5, "0 ms"},
      {0, "0 ms"},
      {999, "999 ms"},
      {1000, "1.0 s"},
      {12'340, "12.3 s"},
      {119'949, "119.9 s"},
      {119'950, "2 min 0 s"},
      {120'000, "2 min 0 s"},
      {200'400, "3 min 20 s"},
      {7'199'000, "119 min 59 s"},
      {7'200'000, "2 h 0 min"},
      {7'500'000, "2 h 5 min"},
      {360'000'000, "100 h 0 min"},
  };
  for (const auto& [ms, text] : cases)
    EXPECT_EQ(describe_duration(ms), text);
}

TEST(DurationTextTest, ALimitIsShownToATenthOfASecond) {
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "0 s"},       {49, "0 s"},      {50, "0.1 s"},      {1'000, "1 s"},
      {1'449, "1.4 s"}, {1'450, "1.5 s"}, {600'000, "600 s"}, {9'999, "10 s"},
  };
  for (const auto& [ms, text] : cases)
    EXPECT_EQ(seconds_text(std::chrono::milliseconds(ms)), text);
}

TEST(DurationTextTest, WhatWasSetIsShownExactly) {
  EXPECT_EQ(exact_duration(0ms), "0 s");
  EXPECT_EQ(exact_duration(10s), "10 s");
  EXPECT_EQ(exact_duration(1'500ms), "1500 ms");
  EXPECT_EQ(exact_duration(10s, ""), "10s");
  EXPECT_EQ(exact_duration(1'500ms, ""), "1500ms");
}

}  // namespace
}  // namespace drun
