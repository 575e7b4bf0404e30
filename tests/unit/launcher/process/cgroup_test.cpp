#include "launcher/process/cgroup.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::process {
namespace {

constexpr const char* kUnifiedMount =
    "24 1 0:21 / /proc rw - proc proc rw\n"
    "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kHybridMounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:7 master:2 - cgroup2 cgroup2 rw\n";

TEST(CgroupTest, FindsTheDirectoriesOfThisProcess) {
  const struct {
    const char* what;
    const char* cgroup;
    const char* mounts;
    CgroupPaths expected;
  } cases[] = {
      {"v2 only",
       "0::/user.slice/user-1.slice/session-2.scope\n",
       kUnifiedMount,
       {"/sys/fs/cgroup/user.slice/user-1.slice/session-2.scope", "", false}},
      {"top of a container", "0::/\n", kUnifiedMount, {"/sys/fs/cgroup", "", true}},
      {"hybrid",
       "9:name=systemd:/x\n4:memory:/job/a\n2:cpu,cpuacct:/\n0::/u\n",
       kHybridMounts,
       {"/sys/fs/cgroup/unified/u", "/sys/fs/cgroup/memory/job/a", false}},
      {"memory beside another controller",
       "4:hugetlb,memory:/m\n",
       "35 31 0:32 / /cg rw - cgroup cgroup rw,hugetlb,memory\n",
       {"", "/cg/m", false}},
      {"part of the hierarchy is mounted",
       "0::/docker/abc/inner\n",
       "5 1 0:1 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
       {"/sys/fs/cgroup/inner", "", false}},
      {"outside of what is mounted",
       "0::/docker/abcdef\n",
       "5 1 0:1 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
       {"", "", false}},
      {"above the namespace", "0::/../other\n", kUnifiedMount, {"", "", false}},
      {"a blank in the path",
       "0::/x\n",
       "5 1 0:1 / /my\\040mount rw - cgroup2 cgroup2 rw\n",
       {"/my mount/x", "", false}},
      {"not mounted",
       "4:memory:/m\n0::/x\n",
       "24 1 0:21 / /proc rw - proc proc rw\n",
       {"", "", false}},
      {"nothing", "", "", {"", "", false}},
      {"nonsense", "x\n::\n:::\n0:\n", "- -\n1 2 3 - cgroup2\n - \n", {"", "", false}},
  };
  for (const auto& c : cases) {
    const auto place = find_cgroups(c.cgroup, c.mounts);
    EXPECT_EQ(place.unified, c.expected.unified) << c.what;
    EXPECT_EQ(place.memory_v1, c.expected.memory_v1) << c.what;
    EXPECT_EQ(place.unified_is_top, c.expected.unified_is_top) << c.what;
  }
}

TEST(CgroupTest, ReadsACounterByItsWholeName) {
  const char* text = "low 0\noom 3\noom_kill 12\noom_group_kill 1\n";
  EXPECT_EQ(flat_value(text, "oom_kill"), 12U);
  EXPECT_EQ(flat_value(text, "oom"), 3U);
  EXPECT_EQ(flat_value(text, "oom_"), std::nullopt);
  EXPECT_EQ(flat_value("oom_kill 12", "oom_kill"), 12U);
  EXPECT_EQ(flat_value("oom_kill x\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(flat_value("oom_kill\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(flat_value("", "oom_kill"), std::nullopt);
}

TEST(CgroupTest, WithoutACounterNothingIsOutOfMemory) {
  OutOfMemoryCount count;
  EXPECT_FALSE(count.take());
  count.forget();
  EXPECT_FALSE(OutOfMemoryCount(CgroupPaths()).take());
}

// Directories of any kind do.
TEST(WorkerCgroupTest, EachRoundHasAGroupOfItsOwn) {
  const test::TemporaryDirectory parent;
  const std::string path = parent.file("group");
  WorkerCgroup group(parent.file(""), "group");
  EXPECT_EQ(group.fd(), -1);
  EXPECT_TRUE(group.next_round());
  EXPECT_GE(group.fd(), 0);
  EXPECT_TRUE(std::filesystem::is_directory(path + "/0"));
  std::filesystem::create_directories(path + "/0/of a worker");
  EXPECT_TRUE(group.next_round());
  EXPECT_FALSE(std::filesystem::exists(path + "/0"));
  EXPECT_TRUE(std::filesystem::is_directory(path + "/1"));
  EXPECT_TRUE(group.remove(std::chrono::milliseconds(0)));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WorkerCgroupTest, ANameThatIsTakenIsNotUsed) {
  const test::TemporaryDirectory parent;
  std::filesystem::create_directory(parent.file("group"));
  WorkerCgroup group(parent.file(""), "group");
  EXPECT_FALSE(group.next_round()) << "what lives there is somebody else's";
  EXPECT_EQ(group.fd(), -1);
}

}  // namespace
}  // namespace drun::process
