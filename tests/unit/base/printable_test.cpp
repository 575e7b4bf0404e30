#include "base/printable.hpp"

#include <string_view>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(PrintableTest, NothingActsAndNothingMakesALine) {
  using namespace std::string_view_literals;
  struct Case {
    std::string_view text;
    std::string_view shown;
  };
  for (const auto& [text, shown] : {
           Case{"", ""},
           Case{"plain, with a\ttab and a \\", "plain, with a\ttab and a \\"},
           Case{"gr\xc3\xbc\xc3\x9f \xe2\x9c\x93", "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93"},
           Case{"\x1b[2J\a", "\\x1b[2J\\x07"},
           Case{"two\nlines\r", "two\\nlines\\x0d"},
           Case{"\0\x7f"sv, "\\x00\\x7f"},
           Case{"\xc2\x9b"
                "2J\xc2\x85",
                "\\xc2\\x9b"
                "2J\\xc2\\x85"},
           Case{"\xff\xc3", "\\xff\\xc3"},
           Case{"\xe2\x80\xae reversed", "\\xe2\\x80\\xae reversed"},
       }) {
    EXPECT_EQ(printable(text), shown);
  }
}

TEST(PrintableTest, ANameIsQuotedWhereItsEndsWouldNotBeSeen) {
  EXPECT_EQ(as_name("./train-1.py"), "./train-1.py");
  EXPECT_EQ(as_name("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(as_name(""), "''");
  EXPECT_EQ(as_name("echo hi"), "'echo hi'");
  EXPECT_EQ(as_name("a\tb"), "'a\tb'");
  EXPECT_EQ(as_name("a\n"), "'a\\n'");
}

TEST(PrintableTest, NoCharacterTurnsEndsOrHidesText) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  constexpr Range kHarmful[] = {
      {0x00, 0x08},     {0x0a, 0x1f},       {0x7f, 0x9f},       {0x61c, 0x61c},
      {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2066, 0x206f},   {0xfeff, 0xfeff},
      {0xfff9, 0xfffb}, {0xe0001, 0xe0001}, {0xe0020, 0xe007f},
  };
  for (const auto& [first, last] : kHarmful) {
    for (char32_t c = first; c <= last; ++c)
      EXPECT_TRUE(is_harmful(c)) << std::hex << static_cast<unsigned>(c);
    EXPECT_FALSE(first > 0 && is_harmful(first - 1)) << std::hex << static_cast<unsigned>(first);
    EXPECT_FALSE(is_harmful(last + 1)) << std::hex << static_cast<unsigned>(last);
  }
  // Parts of ordinary words and emoji.
  for (const char32_t c : {U'\t', U'\u200b', U'\u200c', U'\u200d', U'\u05d0', U'\u0627'})
    EXPECT_FALSE(is_harmful(c)) << std::hex << static_cast<unsigned>(c);
}

}  // namespace
}  // namespace drun
