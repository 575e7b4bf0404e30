#include "launcher/agent/excluded_hosts.hpp"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr std::int64_t kNow = 1'700'000'000;

TEST(ExcludedHostsTest, AWrittenLineIsReadForADay) {
  const std::string text = with_excluded_host("", "node7", "it was lost 2 times", kNow);
  EXPECT_EQ(text, "node7 1700000000 it was lost 2 times\n");
  EXPECT_THAT(parse_excluded_hosts(text, kNow + kExcludedFor - 1),
              ElementsAre(Pair("node7", "--exclude-file: it was lost 2 times")));
  EXPECT_THAT(parse_excluded_hosts(text, kNow + kExcludedFor), IsEmpty());
}

TEST(ExcludedHostsTest, WhatIsNotUnderstoodIsLeftOut) {
  EXPECT_THAT(parse_excluded_hosts("\n# words\nnode1\nnode2 soon\nnode3 -5 old\n"
                                   "node4 99999999999999999999 x\nnode5 1900000000 ahead\n",
                                   kNow),
              IsEmpty());
  EXPECT_THAT(parse_excluded_hosts("node1 1700000000\x1b[2J\nnode2 1700000000 a\x1b[2J", kNow),
              ElementsAre(Pair("node2", "--exclude-file: a\\x1b[2J")));
}

TEST(ExcludedHostsTest, AHostHasOneLineAndOldOnesGo) {
  std::string text = "old 1 x\n";
  text = with_excluded_host(text, "a", "one", kNow);
  text = with_excluded_host(text, "b", "two", kNow);
  text = with_excluded_host(text, "a", "three\nlines", kNow + 1);
  EXPECT_EQ(text, "b 1700000000 two\na 1700000001 three\\nlines\n");
}

TEST(ExcludedHostsTest, WhatSomebodyElseWroteStays) {
  EXPECT_EQ(with_excluded_host("# x\nnode7\n", "node8", "why", kNow),
            "# x\nnode7\nnode8 1700000000 why\n");
  EXPECT_EQ(with_excluded_host("# x\n\n  node7 soon\nold 1 x\nnode8 1700000000 y\n# end", "node8",
                               "why", kNow),
            "# x\n\n  node7 soon\n# end\nnode8 1700000000 why\n");
  EXPECT_EQ(odd_line("# x\n\nold 1 x\n\nnode7\nnode8\n"), 5U);
  EXPECT_EQ(odd_line("# x\n\nold 1 x\n"), 0U);
  EXPECT_EQ(odd_line(""), 0U);
}

// Another job's line of the same host is not ours to take away.
TEST(ExcludedHostsTest, OnlyTheLineThatWasAddedIsTakenBack) {
  const std::string before = "# x\nnode7\nnode8 1700000000 lost\n";
  const std::string after = with_excluded_host(before, "node9", "failed\n2", kNow);
  EXPECT_EQ(without_excluded_host(after, "node9", "failed\n2"), before);
  EXPECT_EQ(without_excluded_host(after, "node9", "failed"), after);
  EXPECT_EQ(without_excluded_host(after, "node8", "failed\n2"), after);
}

TEST(ExcludedHostsTest, TheListIsBounded) {
  std::string text;
  for (std::size_t i = 0; i < kMostExcluded; ++i)
    text += "n" + std::to_string(i) + " 1700000000 x\n";
  const auto hosts = parse_excluded_hosts(with_excluded_host(text, "last", "x", kNow), kNow);
  EXPECT_THAT(hosts, SizeIs(kMostExcluded));
  EXPECT_TRUE(hosts.contains("last"));
  EXPECT_FALSE(hosts.contains("n0"));
}

TEST(ExcludedHostsTest, AFileThatIsNotThereIsEmptyAndIsMade) {
  test::TemporaryDirectory folder;
  const std::string file = folder.file("bad-hosts");
  const auto none = ask_excluded_hosts(file);
  ASSERT_TRUE(none) << none.error().what();
  EXPECT_THAT(*none, IsEmpty());
  add_excluded_host(file, "node7", "because");
  const auto one = ask_excluded_hosts(file);
  ASSERT_TRUE(one);
  EXPECT_THAT(*one, ElementsAre(Pair("node7", "--exclude-file: because")));
}

TEST(ExcludedHostsTest, AMissingFolderAPipeAndALargeFileAreRefusedAtOnce) {
  test::TemporaryDirectory folder;
  const auto text = [](const std::string& file) { return ask_excluded_hosts(file).error().what(); };
  EXPECT_THAT(text(folder.file("none/list")), HasSubstr("its folder must be there"));
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(text(pipe), HasSubstr("--exclude-file"));
  EXPECT_THAT(text(pipe), HasSubstr("it must be a file"));
  EXPECT_THAT(text(folder.file("")), HasSubstr("it must be a file"));
  std::ofstream(folder.file("large")) << std::string(kMaxExcludeFile + 1, 'x');
  EXPECT_THAT(text(folder.file("large")), HasSubstr("too large"));
}

}  // namespace
}  // namespace drun::launcher
