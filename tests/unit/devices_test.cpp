// Counting CPUs and GPUs of machines that are made up.
#include "launcher/devices.hpp"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Files = std::map<std::string, std::string>;

FileSource source_of(Files files) {
  FileSource source;
  source.read = [files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
  source.list = [files](const std::string& directory) {
    std::set<std::string> names;
    for (const auto& [path, text] : files) {
      if (!path.starts_with(directory + "/")) continue;
      const std::string rest = path.substr(directory.size() + 1);
      names.insert(rest.substr(0, rest.find('/')));
    }
    return std::vector<std::string>(names.begin(), names.end());
  };
  return source;
}

Machine machine_of(int affinity, Files files, std::optional<NvidiaGpus> nvidia = std::nullopt) {
  return {affinity, source_of(std::move(files)), [nvidia] { return nvidia; }};
}

const std::string kMountinfo2 =
    "22 28 0:20 / /proc rw,nosuid - proc proc rw\n"
    "31 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kMountinfo1 =
    "33 31 0:28 / /sys/fs/cgroup/cpuset rw shared:11 - cgroup cgroup rw,cpuset\n"
    "34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct\n";

TEST(CpuCountTest, WithoutAQuotaTheAffinityMaskCounts) {
  EXPECT_EQ(usable_cpus(machine_of(12, {})), 12);
  EXPECT_EQ(usable_cpus(machine_of(12, {{"/proc/self/mountinfo", kMountinfo2},
                                        {"/proc/self/cgroup", "0::/user.slice\n"},
                                        {"/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"}})),
            12);
  EXPECT_EQ(usable_cpus(machine_of(0, {})), 1);
}

int with_quota2(const std::string& group, const Files& limits, int affinity = 16) {
  Files files = limits;
  files["/proc/self/mountinfo"] = kMountinfo2;
  files["/proc/self/cgroup"] = "1:name=systemd:/x\n0::" + group + "\n";
  return usable_cpus(machine_of(affinity, files));
}

TEST(CpuCountTest, AQuotaOfVersion2CountsWhereverItIsSetOnTheWayUp) {
  const std::string root = "/sys/fs/cgroup";
  EXPECT_EQ(with_quota2("/a/b", {{root + "/a/b/cpu.max", "400000 100000\n"}}), 4);
  EXPECT_EQ(with_quota2("/a/b", {{root + "/a/cpu.max", "200000 100000\n"},
                                 {root + "/a/b/cpu.max", "400000 100000\n"}}),
            2);
  EXPECT_EQ(with_quota2("/", {{root + "/cpu.max", "300000 100000\n"}}), 3);     // in a container
  EXPECT_EQ(with_quota2("/a", {{root + "/a/cpu.max", "350000 100000\n"}}), 3);  // rounded down
  EXPECT_EQ(with_quota2("/a", {{root + "/a/cpu.max", "50000 100000\n"}}), 1);   // at least one
  EXPECT_EQ(with_quota2("/a", {{root + "/a/cpu.max", "800000 100000\n"}}, 2), 2);
  for (const char* odd : {"", "max", "x y", "100000", "-1 100000", "100000 0", "0 100000"}) {
    EXPECT_EQ(with_quota2("/a", {{root + "/a/cpu.max", odd}}), 16) << odd;
  }
}

TEST(CpuCountTest, AQuotaOfVersion1CountsAsWell) {
  const std::string group = "/sys/fs/cgroup/cpu,cpuacct/job";
  Files files{{"/proc/self/mountinfo", kMountinfo1},
              {"/proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/job\n"},
              {group + "/cpu.cfs_quota_us", "250000\n"},
              {group + "/cpu.cfs_period_us", "100000\n"}};
  EXPECT_EQ(usable_cpus(machine_of(16, files)), 2);
  files[group + "/cpu.cfs_quota_us"] = "-1\n";
  EXPECT_EQ(usable_cpus(machine_of(16, files)), 16);
}

TEST(CpuCountTest, AContainerThatSeesTheHostsPathFindsItsOwnPartOfTheTree) {
  const std::string mount = "34 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
  Files files{{"/proc/self/mountinfo", mount},
              {"/proc/self/cgroup", "4:cpu:/docker/abc\n"},
              {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000"},
              {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"}};
  EXPECT_EQ(usable_cpus(machine_of(16, files)), 3);
  files["/proc/self/cgroup"] = "4:cpu:/docker/abc/inner\n";
  files["/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us"] = "200000";
  files["/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us"] = "100000";
  EXPECT_EQ(usable_cpus(machine_of(16, files)), 2);
}

TEST(CpuCountTest, FilesThatMakeNoSenseAreNoLimit) {
  for (const char* text : {"", "\n\n", "1 2 3\n", "a b c d e f - cgroup2\n", "::::\n", "0:"}) {
    EXPECT_EQ(
        usable_cpus(machine_of(8, {{"/proc/self/mountinfo", text}, {"/proc/self/cgroup", text}})),
        8)
        << text;
  }
}

// ---- GPUs ----

const NvidiaGpus kFour{{"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"}};

TEST(NvidiaTest, TheMaskIsReadAsTorchReadsIt) {
  EXPECT_THAT(visible_nvidia(kFour, nullptr), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(visible_nvidia(kFour, ""), IsEmpty());
  EXPECT_THAT(visible_nvidia(kFour, "0"), ElementsAre(0));
  EXPECT_THAT(visible_nvidia(kFour, "3,1"), ElementsAre(3, 1));
  EXPECT_THAT(visible_nvidia(kFour, " 2 , 0 "), ElementsAre(2, 0));
  EXPECT_THAT(visible_nvidia(kFour, "1gpu2,2ampere"), ElementsAre(1, 2));  // as strtoul
  EXPECT_THAT(visible_nvidia(kFour, "+1"), ElementsAre(1));
  EXPECT_THAT(visible_nvidia(kFour, "0,-1,2"), ElementsAre(0));
  EXPECT_THAT(visible_nvidia(kFour, "0,x,2"), ElementsAre(0));
  EXPECT_THAT(visible_nvidia(kFour, "-1"), IsEmpty());
  EXPECT_THAT(visible_nvidia(kFour, "NoDevFiles"), IsEmpty());
  EXPECT_THAT(visible_nvidia(kFour, "0,4,1"), ElementsAre(0));  // out of range ends the list
  EXPECT_THAT(visible_nvidia(kFour, "0,1,0"), IsEmpty());       // a repeated one empties it
  EXPECT_THAT(visible_nvidia(kFour, "0,9,0"), IsEmpty());
  EXPECT_THAT(visible_nvidia(kFour, "GPU-cc44,GPU-aa11"), ElementsAre(3, 0));
  EXPECT_THAT(visible_nvidia(kFour, "GPU-b"), ElementsAre(2));
  EXPECT_THAT(visible_nvidia(kFour, "GPU-aa"), IsEmpty());  // ambiguous
  EXPECT_THAT(visible_nvidia(kFour, "GPU-b,GPU-zz,GPU-c"), ElementsAre(2));
  EXPECT_THAT(visible_nvidia(kFour, "GPU-b,GPU-bb33"), IsEmpty());
  EXPECT_THAT(visible_nvidia(kFour, "GPU-b,1"), ElementsAre(2));
  EXPECT_THAT(visible_nvidia(kFour, "MIG-1,MIG-2"), ElementsAre(0));
}

int gpus(const Machine& machine, const std::vector<std::string>& environment = {}) {
  const auto count = count_devices(DeviceKind::Gpu, environment, machine);
  return count ? *count : -1;
}

TEST(DeviceCountTest, NvidiaGpusComeFirst) {
  EXPECT_EQ(gpus(machine_of(8, {}, kFour)), 4);
  EXPECT_EQ(gpus(machine_of(8, {}, kFour), {"CUDA_VISIBLE_DEVICES=2,3"}), 2);
  const auto masked =
      count_devices(DeviceKind::Gpu, {"CUDA_VISIBLE_DEVICES="}, machine_of(8, {}, kFour));
  ASSERT_FALSE(masked);
  EXPECT_EQ(masked.error().what(), "CUDA_VISIBLE_DEVICES='' leaves none of 4 GPUs");
  const auto none = count_devices(DeviceKind::Gpu, {}, machine_of(8, {}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what(), "no NVIDIA or AMD GPU is visible on this machine");
  EXPECT_EQ(gpus(machine_of(8, {}, NvidiaGpus{})), -1);  // a driver without a GPU
}

Files rocm_files() {
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  return {
      {nodes + "0/properties", "cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n"},
      {nodes + "1/properties", "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 128\n"},
      {nodes + "2/properties", "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 129\n"},
      {nodes + "3/properties", "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor 130\n"},
      {nodes + "4/other", ""},
      {"/dev/dri/renderD128", ""},
      {"/dev/dri/renderD129", ""},
  };
}

TEST(DeviceCountTest, AmdGpusAreThoseThatHaveADeviceNodeHere) {
  const Machine machine = machine_of(8, rocm_files());
  EXPECT_EQ(gpus(machine), 2);
  EXPECT_EQ(gpus(machine, {"HIP_VISIBLE_DEVICES=1"}), 1);
  EXPECT_EQ(gpus(machine, {"CUDA_VISIBLE_DEVICES=0"}), 1);
  EXPECT_EQ(gpus(machine, {"HIP_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=0"}), 2);
  EXPECT_EQ(gpus(machine, {"ROCR_VISIBLE_DEVICES=1"}), 1);
  EXPECT_EQ(gpus(machine, {"ROCR_VISIBLE_DEVICES=0,1", "HIP_VISIBLE_DEVICES=0"}), 1);
  EXPECT_EQ(gpus(machine, {"ROCR_VISIBLE_DEVICES="}), -1);
  EXPECT_EQ(gpus(machine, {"HIP_VISIBLE_DEVICES=7"}), -1);
}

Files intel_files() {
  const std::string drm = "/sys/class/drm/";
  return {
      {drm + "card0/device/vendor", "0x8086\n"},
      {drm + "renderD128/device/vendor", "0x8086\n"},
      {drm + "renderD129/device/vendor", "0x8086\n"},
      {drm + "renderD129/device/tile0/id", ""},
      {drm + "renderD129/device/tile1/id", ""},
      {drm + "renderD130/device/vendor", "0x1002\n"},
      {drm + "renderD131/device/vendor", "0x8086\n"},
      {"/dev/dri/renderD128", ""},
      {"/dev/dri/renderD129", ""},
      {"/dev/dri/renderD130", ""},
  };
}

TEST(DeviceCountTest, IntelGpusAreCountedByTiles) {
  const FileSource files = source_of(intel_files());
  EXPECT_EQ(visible_intel(files, {}), 3);
  EXPECT_EQ(visible_intel(files, {"ZE_AFFINITY_MASK="}), 3);
  EXPECT_EQ(visible_intel(files, {"ZE_AFFINITY_MASK=0,2"}), 2);
  EXPECT_EQ(visible_intel(files, {"ZE_AFFINITY_MASK=0,0,9,x"}), 1);
  EXPECT_EQ(visible_intel(files, {"ZE_AFFINITY_MASK=1.0,1.1"}), 2);
  const Machine machine = machine_of(8, intel_files());
  EXPECT_EQ(*count_devices(DeviceKind::Xpu, {}, machine), 3);
  const auto none = count_devices(DeviceKind::Xpu, {}, machine_of(8, {}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what(), "no Intel GPU is visible on this machine");
}

TEST(DeviceCountTest, AutoTakesTheAcceleratorElseTheCpus) {
  const auto automatic = [](const Machine& machine) {
    return *count_devices(DeviceKind::Auto, {}, machine);
  };
  EXPECT_EQ(automatic(machine_of(8, intel_files(), kFour)), 4);
  EXPECT_EQ(automatic(machine_of(8, rocm_files())), 2);
  EXPECT_EQ(automatic(machine_of(8, intel_files())), 3);
  EXPECT_EQ(automatic(machine_of(8, {})), 8);
  EXPECT_EQ(*count_devices(DeviceKind::Cpu, {}, machine_of(8, {}, kFour)), 8);
}

}  // namespace
}  // namespace drun::launcher
