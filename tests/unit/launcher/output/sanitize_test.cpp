#include "launcher/output/sanitize.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

struct Case {
  std::string_view line;
  std::string_view shown;
};

TEST(HarmlessLineTest, ShowsWhatATerminalWouldShowAndNothingThatActs) {
  using namespace std::string_view_literals;
  const std::vector<Case> cases{
      {"plain", "plain"},
      {"tab\there", "tab\there"},
      {"gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x99\x82",
       "gr\xc3\xbc\xc3\x9f \xe2\x9c\x93 \xf0\x9f\x99\x82"},
      {"\x1b[31mred\x1b[0m", "red"},
      {"\x1b[2J\x1b[Hgone", "gone"},
      {"\x1b[3~ and \x1b[2@both ends of its final bytes", " and both ends of its final bytes"},
      {"\x1b]0;title\atext", "text"},
      {"\x1b]0;title\x1b\\text", "text"},
      {"\x1bPdata\x1b\\text", "text"},
      {"\x1b(Btext", "text"},
      {"\x1b"
       "7text",
       "text"},
      {"cut off \x1b[31", "cut off "},
      {"cut off \x1b", "cut off "},
      {" 10%\r 50%\r100%", "100%"},
      {"dos\r", "dos"},
      {"bar\r\r\r", "bar"},
      {"nul\0byte"sv, "nul\\x00byte"},
      {"bell\a", "bell\\x07"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc0\xaf", "\\xc0\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xe2\x9c", "\\xe2\\x9c"},
      {"\xc2\x9b"
       "31m",
       "\\xc2\\x9b"
       "31m"},
      {"\xe2\x80\xae"
       "evil",
       "\\xe2\\x80\\xae"
       "evil"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"", ""},
  };
  for (const Case& c : cases)
    EXPECT_EQ(harmless_line(c.line, 1000), c.shown) << c.line;
}

TEST(HarmlessLineTest, CutsALongLineAndSaysHowMuchIsMissing) {
  EXPECT_EQ(harmless_line("0123456789", 10), "0123456789");
  EXPECT_EQ(harmless_line("0123456789", 4), "0123... (6 bytes more)");
  EXPECT_EQ(harmless_line("ab\xc3\xbc"
                          "c",
                          3),
            "ab... (3 bytes more)");  // never half a character
}

}  // namespace
}  // namespace drun::launcher
