#include "base/utc_text.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace drun {
namespace {

constexpr std::int64_t kSecond = 1'795'876'205;  // 2026-11-28 14:30:05 UTC

TEST(UtcTextTest, AMomentAsRfc3339WritesIt) {
  EXPECT_EQ(utc_text(kSecond * 1'000'000'000 + 42'000'007), "2026-11-28T14:30:05.042000007Z");
  EXPECT_EQ(utc_text(kSecond * 1'000'000'000 + 42'900'007, 3), "2026-11-28T14:30:05.042Z");
  EXPECT_EQ(utc_text(0, 1), "1970-01-01T00:00:00.0Z");
}

TEST(UtcTextTest, AMomentAsPeopleWriteIt) {
  EXPECT_EQ(utc_clock_text(kSecond * 1'000 + 999), "14:30:05 UTC");
  EXPECT_EQ(utc_clock_text(kSecond * 1'000 + 999, true), "2026-11-28 14:30:05 UTC");
}

// Documents of others may hold any number.
TEST(UtcTextTest, NoNumberIsTooLarge) {
  for (const auto time : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                          std::numeric_limits<std::int64_t>::max()})
    EXPECT_TRUE(utc_clock_text(time, true).ends_with(" UTC")) << time;
}

}  // namespace
}  // namespace drun
