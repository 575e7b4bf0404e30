#include "launcher/pmi/pmi_line.hpp"

#include <gtest/gtest.h>

namespace drun::launcher::pmi {
namespace {

TEST(PmiLineTest, AFieldIsFoundByItsWholeName) {
  EXPECT_EQ(field("cmd=get_result rc=0 value=a=b", "value"), "a=b");
  EXPECT_EQ(field("cmd=x kvsname2=1 kvsname=2", "kvsname"), "2");
  EXPECT_EQ(field("cmd=x", "rc"), "");
  EXPECT_EQ(field("", "rc"), "");
}

TEST(PmiLineTest, LinesAreTakenAsTheyBecomeComplete) {
  std::string received = "cmd=a\n\ncmd=b";
  EXPECT_EQ(**take_line(received), "cmd=a");
  EXPECT_EQ(**take_line(received), "");
  EXPECT_EQ(*take_line(received), std::nullopt);
  received += "c\n";
  EXPECT_EQ(**take_line(received), "cmd=bc");
  EXPECT_EQ(received, "");
}

TEST(PmiLineTest, ALineMayBeJustAsLong) {
  std::string longest = std::string(kLongestLine, 'x') + "\n";
  EXPECT_EQ((*take_line(longest))->size(), kLongestLine);
  for (const char* end : {"", "\n"}) {
    std::string longer = std::string(kLongestLine + 1, 'x') + end;
    EXPECT_EQ(take_line(longer).error().what(), "a line of more than 4096 bytes");
  }
}

}  // namespace
}  // namespace drun::launcher::pmi
