#include "launcher/output/output_text.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

TEST(TailTest, KeepsTheLastLines) {
  Tail tail(3);
  EXPECT_THAT(tail.lines(), IsEmpty());
  tail.append("one\ntwo\n");
  EXPECT_THAT(tail.lines(), ElementsAre("one", "two"));
  tail.append("three\nfour\nfi");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "fi"));
  tail.append("ve\n");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "five"));
  tail.append("\n\n");
  EXPECT_THAT(tail.lines(), ElementsAre("three", "four", "five"));
}

TEST(TailTest, IsTheSameHoweverTheBytesArrive) {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "line " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 90), 'x') + '\n';
  for (std::size_t wanted : {1U, 2U, 20U, 50U}) {
    const auto expected = last_lines(text, wanted);
    ASSERT_EQ(expected.size(), wanted);
    for (std::size_t step : {1U, 7U, 100U, 5000U, 40000U, 200000U}) {
      Tail tail(wanted);
      for (std::size_t at = 0; at < text.size(); at += step)
        tail.append(std::string_view(text).substr(at, step));
      EXPECT_EQ(tail.lines(), expected) << wanted << " lines, " << step << " bytes at a time";
    }
  }
}

TEST(TailTest, IsBoundedWhateverComes) {
  Tail tail(20);
  for (int i = 0; i < 100; ++i)
    tail.append(std::string(100'000, 'x'));
  ASSERT_EQ(tail.lines().size(), 1U);
  EXPECT_LT(tail.lines()[0].size(), 600U);

  Tail many(1000);
  for (int i = 0; i < 10'000; ++i)
    many.append(std::string(1000, 'y') + '\n');
  std::size_t total = 0;
  for (const auto& line : many.lines())
    total += line.size();
  EXPECT_LE(total, 8192U);
  EXPECT_GE(many.lines().size(), 10U);
}

TEST(TailTest, NoLinesWantedNoLinesKept) {
  Tail tail(0);
  tail.append("one\n");
  EXPECT_THAT(tail.lines(), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
