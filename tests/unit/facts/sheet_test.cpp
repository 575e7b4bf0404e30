#include "facts/sheet.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::facts {
namespace {

TEST(SheetTest, ComesBackAsItWas) {
  const Sheet sheet{{"kernel", "6.1"}, {"gpus", "8 x \"A\" \\ B"}, {"empty", ""}};
  const auto back = decode(encode(sheet));
  ASSERT_TRUE(back) << back.error().what();
  EXPECT_EQ(*back, sheet);
}

TEST(SheetTest, RefusesWhatIsNone) {
  for (const std::string text : {"", "[]", "{", "{\"a\":1}", "{\"a\":{}}", "null"})
    EXPECT_FALSE(decode(text)) << text;
  EXPECT_FALSE(decode("{\"a\":\"" + std::string(3 * kMaxSheet, 'x') + "\"}"));
  std::string many = "{";
  for (std::size_t i = 0; i <= kMaxFacts; ++i)
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  EXPECT_FALSE(decode(many + "}"));
}

TEST(SheetTest, HoldsNothingThatActsOnATerminal) {
  const auto sheet = decode(R"({"kernel":"a\u001b[31mb\nc"})");
  ASSERT_TRUE(sheet);
  EXPECT_EQ(sheet->at("kernel"), "a\\x1b[31mb\\nc");
}

TEST(SheetTest, StaysWithinItsLimits) {
  Sheet sheet;
  for (int i = 0; i < 1000; ++i)
    sheet[std::to_string(i)] = std::string(1000, '"');
  const std::string text = encode(sheet);
  EXPECT_LE(text.size(), 2 * kMaxSheet);
  const auto back = decode(text);
  ASSERT_TRUE(back);
  EXPECT_GT(back->size(), 10U);
  EXPECT_EQ(back->begin()->second.size(), kMaxValue);
}

}  // namespace
}  // namespace drun::facts
