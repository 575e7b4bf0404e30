#include "base/cgroup_mounts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/split.hpp"

namespace drun {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitTest, TakesFieldAfterField) {
  std::string_view rest = "a b  c";
  EXPECT_EQ(take_until(rest, ' '), "a");
  EXPECT_EQ(take_until(rest, ' '), "b");
  EXPECT_EQ(take_until(rest, ' '), "");
  EXPECT_EQ(take_until(rest, ' '), "c");
  EXPECT_EQ(rest, "");
  EXPECT_EQ(take_until(rest, ' '), "");
}

TEST(SplitTest, FindsWholeElementsOnly) {
  EXPECT_TRUE(has_element("rw,cpu,cpuacct", "cpu"));
  EXPECT_TRUE(has_element("rw,cpu,cpuacct", "cpuacct"));
  EXPECT_FALSE(has_element("rw,cpuacct", "cpu"));
  EXPECT_FALSE(has_element("", "cpu"));
}

TEST(CgroupLinesTest, TellTheVersionsApart) {
  EXPECT_THAT(
      parse_cgroup_lines("4:cpu,cpuacct:/job/a\n1:name=systemd:/x\n0::/user.slice\n"),
      ElementsAre(CgroupLine{"cpu,cpuacct", "/job/a", false},
                  CgroupLine{"name=systemd", "/x", false}, CgroupLine{"", "/user.slice", true}));
}

TEST(CgroupLinesTest, APathMayHoldColons) {
  EXPECT_THAT(parse_cgroup_lines("0::/a:b/c"), ElementsAre(CgroupLine{"", "/a:b/c", true}));
}

TEST(CgroupLinesTest, NonsenseIsLeftOut) {
  EXPECT_THAT(parse_cgroup_lines(""), IsEmpty());
  EXPECT_THAT(parse_cgroup_lines("x\n::\n:::\n0:\n0::\n0::relative\n1:cpu\n2::/no-controllers\n"),
              IsEmpty());
}

constexpr const char* kMounts =
    "24 1 0:21 / /proc rw - proc proc rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 /docker/abc /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /cg/cpuset rw - cgroup memory,x rw,cpuset\n"
    "41 31 0:38 / /my\\040mount\\134x rw,relatime shared:7 master:2 - cgroup2 cgroup2 rw\n";

TEST(CgroupMountTest, IsFoundByVersionAndController) {
  EXPECT_EQ(find_cgroup_mount(kMounts, "cpu"), (CgroupMount{"/docker/abc", "/cg/cpu,cpuacct"}));
  EXPECT_EQ(find_cgroup_mount(kMounts, "cpuset"), (CgroupMount{"/", "/cg/cpuset"}));
  EXPECT_EQ(find_cgroup_mount(kMounts, ""), (CgroupMount{"/", "/my mount\\x"}));
  EXPECT_EQ(find_cgroup_mount(kMounts, "memory"), std::nullopt);
  EXPECT_EQ(find_cgroup_mount("", ""), std::nullopt);
}

TEST(CgroupMountTest, NonsenseIsNoMount) {
  for (const char* text : {"nonsense\n", " - \n", "- -\n", "1 2 3 - cgroup2\n",
                           "1 2 3 4 5 -cgroup2", "1 2 3 / relative rw - cgroup2 x rw\n"}) {
    EXPECT_EQ(find_cgroup_mount(text, ""), std::nullopt) << text;
  }
  // An escape that is none stays as it is.
  EXPECT_EQ(find_cgroup_mount("1 2 3 / /a\\09 rw - cgroup2 x rw", "")->point, "/a\\09");
  EXPECT_EQ(find_cgroup_mount("1 2 3 / /a\\04 rw - cgroup2 x rw", "")->point, "/a\\04");
}

TEST(CgroupMountTest, ShowsWhatIsBelowItsRoot) {
  const struct {
    const char* root;
    const char* path;
    std::optional<std::string> expected;
  } cases[] = {
      {"/", "/", ""},
      {"/", "/a/b", "/a/b"},
      {"/docker/abc", "/docker/abc", ""},
      {"/docker/abc", "/docker/abc/", ""},
      {"/docker/abc", "/docker/abc/inner", "/inner"},
      {"/docker/abc", "/docker/abcdef", std::nullopt},
      {"/docker/abc", "/", std::nullopt},
      {"/", "/../other", std::nullopt},
      {"/", "", std::nullopt},
  };
  for (const auto& each : cases)
    EXPECT_EQ(below_mount({each.root, "/cg"}, each.path), each.expected)
        << each.root << " " << each.path;
}

}  // namespace
}  // namespace drun
