#include "base/whole_number.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(WholeNumberTest, IsAllOfTheText) {
  EXPECT_EQ(whole_number<int>("42"), 42);
  EXPECT_EQ(whole_number<int>("-7"), -7);
  EXPECT_EQ(whole_number<int>("007"), 7);
  EXPECT_EQ(whole_number<unsigned>("ff", 16), 255U);
  for (const char* text : {"", " 42", "42 ", "+42", "42x", "0x2a", "4.2", "-"})
    EXPECT_EQ(whole_number<int>(text), std::nullopt) << text;
}

TEST(WholeNumberTest, FitsItsType) {
  EXPECT_EQ(whole_number<std::uint8_t>("255"), 255);
  EXPECT_EQ(whole_number<std::uint8_t>("256"), std::nullopt);
  EXPECT_EQ(whole_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551616"), std::nullopt);
}

}  // namespace
}  // namespace drun
