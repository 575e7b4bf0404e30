#include "base/utf8.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(Utf8Test, TellsLengthAndValueOfTheFirstCharacter) {
  const struct {
    std::string text;
    std::size_t length;
    char32_t value;
  } cases[] = {
      {"abc", 1, U'a'},
      {std::string(1, '\0'), 1, U'\0'},
      {"\x7f", 1, 0x7f},
      {"\xc2\x80", 2, 0x80},
      {"\xc3\xa9t", 2, 0xe9},
      {"\xdf\xbf", 2, 0x7ff},
      {"\xe0\xa0\x80", 3, 0x800},
      {"\xed\x9f\xbf", 3, 0xd7ff},
      {"\xee\x80\x80", 3, 0xe000},
      {"\xef\xbf\xbf", 3, 0xffff},
      {"\xf0\x90\x80\x80", 4, 0x10000},
      {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
  };
  for (const auto& [text, length, value] : cases) {
    const Utf8Character character = first_utf8_character(text);
    EXPECT_EQ(character.length, length) << text;
    EXPECT_EQ(character.value, value) << text;
    EXPECT_TRUE(is_utf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesWhatIsNotStrict) {
  for (const char* text : {
           "\x80",              // a continuation byte
           "\xc0\x80",          // overlong
           "\xc1\xbf",          //
           "\xe0\x9f\xbf",      //
           "\xf0\x8f\xbf\xbf",  //
           "\xed\xa0\x80",      // a surrogate
           "\xf4\x90\x80\x80",  // beyond U+10FFFF
           "\xf5\x80\x80\x80",  //
           "\xff",              //
           "\xc3",              // cut off
           "\xe2\x82",          //
           "\xc3g",             // no continuation
       }) {
    EXPECT_EQ(first_utf8_character(text).length, 0U) << text;
    EXPECT_FALSE(is_utf8(std::string("a") + text)) << text;
  }
  EXPECT_TRUE(is_utf8(""));
}

}  // namespace
}  // namespace drun
