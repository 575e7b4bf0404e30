// With LD_LIBRARY_PATH at a stand-in for NVIDIA's library.
#include "launcher/devices/nvml.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/devices/device_placement.hpp"

namespace drun::launcher {
namespace {

constexpr const char* kFour = "GPU-aa@0:1b:0 GPU-bb@0:1c:0 lost@0:0:0 GPU-dd@10000:9d:1f";

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("FAKE_NVML", kFour, 1);
    ::setenv("FAKE_NVML_MIG", "MIG-1=0 MIG-2=3", 1);
  }
};

TEST_F(NvmlTest, ListsDevicesWithTheirPlaces) {
  const auto answer = ask_nvml({});
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->devices.size(), 4U);
  EXPECT_EQ(answer->devices[0].uuid, "GPU-aa");
  EXPECT_EQ(answer->devices[0].pci_address, "0000:1b:00.0");
  EXPECT_EQ(answer->devices[2].uuid, "");  // keeps its number
  EXPECT_EQ(answer->devices[3].pci_address, "10000:9d:1f.0");
}

TEST_F(NvmlTest, FindsTheGpusOfMigSlices) {
  const auto answer = ask_nvml({"MIG-2", "MIG-9", "MIG-1"});
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->mig_parents.size(), 3U);
  EXPECT_EQ(answer->mig_parents[0].uuid, "GPU-dd");
  EXPECT_EQ(answer->mig_parents[1].uuid, "");
  EXPECT_EQ(answer->mig_parents[2].uuid, "GPU-aa");
}

TEST_F(NvmlTest, WithoutADriverIsNoAnswer) {
  ::unsetenv("FAKE_NVML");
  EXPECT_FALSE(ask_nvml({}).has_value());
}

TEST_F(NvmlTest, WithALibraryThatCrashesIsNoAnswer) {
  ::setenv("FAKE_NVML_CRASHES", "1", 1);
  EXPECT_FALSE(ask_nvml({}).has_value());
  ::unsetenv("FAKE_NVML_CRASHES");
}

TEST_F(NvmlTest, ADriverWithoutDevicesIsAnAnswer) {
  ::setenv("FAKE_NVML", "", 1);
  const auto answer = ask_nvml({});
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->devices.empty());
}

TEST_F(NvmlTest, CountsWorkersOfTheWholeMachine) {
  PlacementRequest request;
  request.devices.workers = CountedBy::Gpu;
  const auto all = plan_placement(request, {});
  ASSERT_TRUE(all.ok()) << all.error().what();
  EXPECT_EQ(all->agents.at(0).size(), 4U);
  const auto masked = plan_placement(request, {"CUDA_VISIBLE_DEVICES=GPU-bb,GPU-dd"});
  ASSERT_TRUE(masked.ok()) << masked.error().what();
  ASSERT_EQ(masked->agents.at(0).size(), 2U);
  EXPECT_EQ(masked->agents.at(0)[1].devices, "GPU 3 (10000:9d:1f.0)");
}

TEST_F(NvmlTest, IsNotLoadedForAPlainJob) {
  PlacementRequest request;
  request.devices.workers = 4;
  ASSERT_TRUE(plan_placement(request, {"CUDA_VISIBLE_DEVICES=0"}).ok());
  request.devices.virtual_local_rank = true;
  ASSERT_TRUE(plan_placement(request, {}).ok());
  for (const char* library : {"libnvidia-ml.so.1", "libhwloc.so.15"}) {
    EXPECT_EQ(::dlopen(library, RTLD_NOLOAD | RTLD_LAZY), nullptr) << library;
  }
}

}  // namespace
}  // namespace drun::launcher
