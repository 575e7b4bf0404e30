#include "doctor/check.hpp"

#include <gtest/gtest.h>

namespace drun::doctor {
namespace {

TEST(CheckTest, ListsComeBackAsTheyWere) {
  const std::vector<Check> checks{passed("a", "fine"), warned("b", "\"so\"", "do"),
                                  failed("c", "bad", "mend")};
  const auto back = decode_checks(encode(checks));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, checks);
  EXPECT_EQ(worst(checks), Verdict::Fail);
  EXPECT_EQ(worst({}), Verdict::Pass);
}

TEST(CheckTest, WhatIsNoListIsAnError) {
  for (const char* text : {"", "{}", "[1]", "[", "null"})
    EXPECT_FALSE(decode_checks(text)) << text;
  const auto odd = decode_checks(R"([{"verdict":"fine","check":7,"reason":"a\u001b[2Jb"}])");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->front(), failed("", "a\\x1b[2Jb", ""));
}

TEST(CheckTest, LinesStandBelowOneAnother) {
  EXPECT_EQ(text_of({passed("disk", "fine"), warned("/dev/shm", "64 MiB", "more")}),
            "pass  disk      fine\nwarn  /dev/shm  64 MiB; more\n");
}

}  // namespace
}  // namespace drun::doctor
