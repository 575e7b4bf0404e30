#include "base/shell_quote.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(ShellQuoteTest, QuotesOnlyWordsThatNeedIt) {
  for (const char* word : {"a", "--flag=1", "/usr/bin/python3", "host:29500", "a,b+c@d%e"})
    EXPECT_EQ(shell_quoted(word), word);
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("two words"), "'two words'");
  EXPECT_EQ(shell_quoted("a\nb"), "'a\nb'");
  EXPECT_EQ(shell_quoted("~"), "'~'");
  EXPECT_EQ(shell_quoted("$HOME;*"), "'$HOME;*'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(ShellQuoteTest, TheShellDecidesHowAQuoteIsWrittenInside) {
  EXPECT_EQ(single_quoted("plain"), "'plain'");
  EXPECT_EQ(single_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(single_quoted("it's", "\\'"), "'it\\'s'");
}

}  // namespace
}  // namespace drun
