#include "base/size_text.hpp"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(SizeTextTest, InWholeUnits) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(64ULL << 20U), "64 MiB");
  EXPECT_EQ(size_text((64ULL << 30U) - 12'345), "64 GiB");
  EXPECT_EQ(size_text(8ULL << 20U), "8192 KiB");
  EXPECT_EQ(size_text(RLIM_INFINITY), "unlimited");
}

TEST(SizeTextTest, WithATenthBelowAHundred) {
  EXPECT_EQ(size_text_of_kib(0), "0 KiB");
  EXPECT_EQ(size_text_of_kib(1'023), "1023 KiB");
  EXPECT_EQ(size_text_of_kib(3'500), "3.4 MiB");
  EXPECT_EQ(size_text_of_kib(10 * 1'024 * 1'024), "10.0 GiB");
  EXPECT_EQ(size_text_of_kib(100 * 1'024), "100 MiB");
  EXPECT_EQ(size_text_of_kib(5'000'000'000'000), "4656 TiB");
}

}  // namespace
}  // namespace drun
