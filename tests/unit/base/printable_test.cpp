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

}  // namespace
}  // namespace drun
