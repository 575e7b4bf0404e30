#include "base/usable_cpus.hpp"

#include <sched.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cpu_list.hpp"
#include "support/file_tree.hpp"

namespace drun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CpuListTest, ReadsWhatTheKernelWrites) {
  const struct {
    const char* text;
    std::vector<int> numbers;
  } cases[] = {
      {"", {}},
      {"\n", {}},
      {"0\n", {0}},
      {"0-3\n", {0, 1, 2, 3}},
      {"0-2,8,10-11", {0, 1, 2, 8, 10, 11}},
      {"5,1,3-4,3", {1, 3, 4, 5}},
      {" 0 - 1 , 7 ", {0, 1, 7}},
      {"\t0\n", {0}},
  };
  for (const auto& each : cases) {
    const auto parsed = parse_cpu_list(each.text);
    ASSERT_TRUE(parsed.ok()) << each.text;
    EXPECT_EQ(*parsed, each.numbers) << each.text;
  }
}

TEST(CpuListTest, RefusesWhatIsNoList) {
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "1,", ",1", "1;2", "0x3", "1.5",
                           "0-2097152", "99999999999", "1-2-3", "1 2"}) {
    const auto parsed = parse_cpu_list(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.error().what(), HasSubstr("is not a list of numbers and ranges")) << text;
  }
}

TEST(CpuListTest, WritesRangesAndReadsThemBack) {
  EXPECT_EQ(format_cpu_list({}), "");
  EXPECT_EQ(format_cpu_list({4}), "4");
  EXPECT_EQ(format_cpu_list({0, 1}), "0-1");
  EXPECT_EQ(format_cpu_list({0, 1, 2, 4, 6, 7}), "0-2,4,6-7");
  for (unsigned bits = 0; bits < 256; ++bits) {
    std::vector<int> numbers;
    for (int i = 0; i < 8; ++i) {
      if ((bits >> i & 1U) != 0) numbers.push_back(i);
    }
    const auto back = parse_cpu_list(format_cpu_list(numbers));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, numbers);
  }
}

constexpr const char* kV2Mounts =
    "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
    "30 1 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
// As inside a container of Docker with cgroup version 1: only its own part is mounted.
constexpr const char* kV1ContainerMounts =
    "40 1 0:30 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
    "41 1 0:31 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n";

TEST(QuotaFoldersTest, GoesUpFromTheOwnCgroupToTheMount) {
  EXPECT_THAT(quota_folders("0::/user.slice/job.scope\n", kV2Mounts),
              ElementsAre(QuotaFolder{"/sys/fs/cgroup/user.slice/job.scope", true},
                          QuotaFolder{"/sys/fs/cgroup/user.slice", true},
                          QuotaFolder{"/sys/fs/cgroup", true}));
}

TEST(QuotaFoldersTest, TakesTheMountWhereTheCgroupIsTheRootOrOutsideOfIt) {
  for (const char* cgroup : {"0::/\n", "0::/../other\n"}) {
    EXPECT_THAT(quota_folders(cgroup, kV2Mounts), ElementsAre(QuotaFolder{"/sys/fs/cgroup", true}))
        << cgroup;
  }
  const std::string inside = "4:cpu,cpuacct:/docker/abc\n3:cpuset:/docker/abc\n";
  EXPECT_THAT(quota_folders(inside, kV1ContainerMounts),
              ElementsAre(QuotaFolder{"/sys/fs/cgroup/cpu,cpuacct", false}));
  // docker/abcdef is another container, not a part of docker/abc.
  EXPECT_THAT(quota_folders("4:cpu,cpuacct:/docker/abcdef\n", kV1ContainerMounts),
              ElementsAre(QuotaFolder{"/sys/fs/cgroup/cpu,cpuacct", false}));
}

TEST(QuotaFoldersTest, FollowsASubgroupOfWhatIsMounted) {
  EXPECT_THAT(quota_folders("4:cpu,cpuacct:/docker/abc/step0\n", kV1ContainerMounts),
              ElementsAre(QuotaFolder{"/sys/fs/cgroup/cpu,cpuacct/step0", false},
                          QuotaFolder{"/sys/fs/cgroup/cpu,cpuacct", false}));
}

TEST(QuotaFoldersTest, LooksAtBothVersionsOfAHybridMachine) {
  const std::string mounts = std::string(kV1ContainerMounts) + kV2Mounts;
  EXPECT_THAT(
      quota_folders("4:cpu,cpuacct:/docker/abc\n0::/x\n", mounts),
      ElementsAre(QuotaFolder{"/sys/fs/cgroup/cpu,cpuacct", false},
                  QuotaFolder{"/sys/fs/cgroup/x", true}, QuotaFolder{"/sys/fs/cgroup", true}));
}

TEST(QuotaFoldersTest, ReadsBlanksInAMountPoint) {
  EXPECT_THAT(quota_folders("0::/\n", "30 1 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\n"),
              ElementsAre(QuotaFolder{"/a b", true}));
}

TEST(QuotaFoldersTest, FindsNothingInWhatItDoesNotUnderstand) {
  EXPECT_THAT(quota_folders("", ""), IsEmpty());
  EXPECT_THAT(quota_folders("nonsense\n1:cpu\n::\n", "nonsense\n1 2 3 - cgroup2\n"), IsEmpty());
  EXPECT_THAT(quota_folders("0::/x\n", "22 1 0:20 / /proc rw - proc proc rw\n"), IsEmpty());
}

TEST(QuotaTest, ReadsBothVersions) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000 0"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("250000\n", "100000\n"), 2.5);
  EXPECT_EQ(parse_cfs_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("x", "100000"), std::nullopt);
}

TEST(UsableCpusTest, RoundsTheQuotaDownToAtLeastOne) {
  const struct {
    std::size_t cpus;
    std::optional<double> quota;
    int count;
  } cases[] = {
      {8, std::nullopt, 8}, {8, 16.0, 8}, {8, 8.0, 8}, {8, 3.99, 3},
      {8, 1.5, 1},          {8, 0.25, 1}, {1, 4.0, 1}, {0, std::nullopt, 1},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(count_usable_cpus(each.cpus, each.quota), each.count)
        << each.cpus << " CPUs, quota " << each.quota.value_or(-1);
  }
}

TEST(UsableCpusTest, TakesTheLowestQuotaOnTheWayUp) {
  test::FileTree tree;
  tree.write("/proc/self/cgroup", "0::/pod/container\n");
  tree.write("/proc/self/mountinfo", kV2Mounts);
  EXPECT_EQ(read_cpu_quota(tree.root()), std::nullopt);
  tree.write("/sys/fs/cgroup/pod/container/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), std::nullopt);
  tree.write("/sys/fs/cgroup/pod/cpu.max", "350000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 3.5);
  tree.write("/sys/fs/cgroup/pod/container/cpu.max", "200000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 2.0);
  tree.write("/sys/fs/cgroup/pod/container/cpu.max", "900000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 3.5);
}

TEST(UsableCpusTest, ReadsTheQuotaOfVersion1) {
  test::FileTree tree;
  tree.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc\n");
  tree.write("/proc/self/mountinfo", kV1ContainerMounts);
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 4.0);
}

TEST(UsableCpusTest, KnowsTheAffinityOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const auto cpus = own_affinity();
  EXPECT_EQ(cpus.size(), static_cast<std::size_t>(CPU_COUNT(&before)));
  ASSERT_FALSE(cpus.empty());

  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpus.back()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_THAT(own_affinity(), ElementsAre(cpus.back()));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(UsableCpusTest, ReadsTheAllowedMemoryNodes) {
  test::FileTree tree;
  EXPECT_EQ(read_allowed_memory_nodes(tree.root()), std::nullopt);
  tree.write("/proc/self/status",
             "Name:\tx\nMems_allowed:\t00000003\nMems_allowed_list:\t0-1,4\n"
             "voluntary_ctxt_switches:\t1\n");
  EXPECT_THAT(read_allowed_memory_nodes(tree.root()), (std::vector<int>{0, 1, 4}));
  const auto here = read_allowed_memory_nodes("");
  ASSERT_TRUE(here.has_value());
  EXPECT_FALSE(here->empty());
}

}  // namespace
}  // namespace drun
