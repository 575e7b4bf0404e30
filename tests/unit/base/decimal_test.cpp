#include "base/decimal.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(DecimalTest, TakesDigitsAndOnePoint) {
  struct Case {
    const char* text;
    double number;
    const char* rest;
  };
  for (const auto& [text, number, left] : std::vector<Case>{{"90", 90, ""},
                                                            {"1.5h", 1.5, "h"},
                                                            {".5", 0.5, ""},
                                                            {"2.", 2, ""},
                                                            {"1.5.2", 1.5, ".2"},
                                                            {"1e3", 1, "e3"},
                                                            {"0x10", 0, "x10"}}) {
    std::string_view rest = text;
    EXPECT_EQ(take_decimal(rest), number) << text;
    EXPECT_EQ(rest, left) << text;
  }
}

TEST(DecimalTest, TakesNothingElse) {
  for (const char* text : {"", ".", "-1", "+1", " 1", "inf", "nan", ".e", "x"}) {
    std::string_view rest = text;
    EXPECT_EQ(take_decimal(rest), std::nullopt) << text;
    EXPECT_EQ(rest, text);
  }
}

TEST(DecimalTest, WhatIsTooLargeIsInfinite) {
  const std::string digits(400, '9');
  std::string_view rest = digits;
  EXPECT_TRUE(std::isinf(take_decimal(rest).value_or(0)));
}

}  // namespace
}  // namespace drun
