#include "base/template_text.hpp"

#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(TemplateTextTest, FillsInWhatItKnowsAndLeavesTheRest) {
  const std::map<std::string, std::string, std::less<>> values{{"rank", "3"}, {"role_name", "w$x"}};
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"$rank", "3"},
      {"[$rank]:", "[3]:"},
      {"${role_name}${rank} ", "w$x3 "},
      {"$rank-$rank/${rank}${rank}", "3-3/33"},
      {"$", "$"},
      {"100$ ", "100$ "},
      {"${unknown} $unknown", "${unknown} $unknown"},
      {"${rank", "${rank"},
      {"${rank$rank", "${rank3"},
      {"${}", "${}"},
      {"${rank x}", "${rank x}"},
      {"$rank_x $ranks $RANK", "$rank_x $ranks $RANK"},
      {"$rank0 $rank9", "$rank0 $rank9"},
      {"$3 ${3}", "$3 ${3}"},
      {"$rank\xc3\xa9", "3\xc3\xa9"},
      {"\xff$rank\xff",
       "\xff"
       "3\xff"},
      {"$$", "$$"},
      {"$$rank", "$$rank"},
      {"$$$rank", "$$3"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(fill_template(text, values), expected) << text;
  EXPECT_EQ(fill_template(std::string_view("$ranks").substr(0, 5), values), "3") << "a part";
}

TEST(TemplateTextTest, TwoDollarsAreANameOfTheirOwn) {
  const std::map<std::string, std::string, std::less<>> values{{"$", "$"}, {"rank", "3"}};
  EXPECT_EQ(fill_template("$$", values), "$");
  EXPECT_EQ(fill_template("$$rank", values), "$rank");
  EXPECT_EQ(fill_template("$$$rank", values), "$3");
  EXPECT_EQ(fill_template("${$}", values), "${$}");
}

TEST(TemplateTextTest, NamesInBracesAreFound) {
  EXPECT_EQ(names_in_braces("a $b ${c}-$${d} ${e} ${} ${f"), (std::vector<std::string>{"c", "e"}));
}

}  // namespace
}  // namespace drun
