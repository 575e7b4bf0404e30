// A line in words.
#include "base/shell_words.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun {
namespace {

using Words = std::vector<std::string>;

TEST(ShellWordsTest, AreWhatAShellReads) {
  const struct {
    const char* line;
    Words words;
  } cases[] = {
      {"", {}},
      {" \t a  b\n", {"a", "b"}},
      {"ssh -o 'ProxyCommand x y'", {"ssh", "-o", "ProxyCommand x y"}},
      {R"(a\ b "c \"d\" \x $e" 'f\g')", {"a b", R"(c "d" \x $e)", R"(f\g)"}},
      {R"("\\ \$ \` \'" \$)", {R"(\ $ ` \')", "$"}},
      {R"('' "" x''y"z")", {"", "", "xyz"}},
  };
  for (const auto& [line, words] : cases)
    EXPECT_EQ(*shell_words(line), words) << line;
}

TEST(ShellWordsTest, WhatIsNotClosedIsNamed) {
  EXPECT_EQ(shell_words("a 'b").error().what(), "a ' is not closed");
  EXPECT_EQ(shell_words("a \"b' c").error().what(), "a \" is not closed");
  EXPECT_EQ(shell_words("a \\").error().what(), "nothing stands behind the last backslash");
}

}  // namespace
}  // namespace drun
