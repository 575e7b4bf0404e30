// Asks a driver library that is made up for its GPUs.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/devices.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"FAKE_NVML_GPUS", "FAKE_NVML_FAILS", "FAKE_NVML_CRASHES"}) {
      ::unsetenv(name);
    }
  }

  static std::optional<NvidiaGpus> ask() { return this_machines_devices().nvidia(); }
};

TEST_F(NvmlTest, GpusAreListedWithTheirUuids) {
  ::setenv("FAKE_NVML_GPUS", "3", 1);
  const auto gpus = ask();
  ASSERT_TRUE(gpus);
  EXPECT_THAT(gpus->uuids, ElementsAre("GPU-0000", "GPU-0001", "GPU-0002"));
}

TEST_F(NvmlTest, AGpuThatDoesNotAnswerIsStillOne) {
  ::setenv("FAKE_NVML_GPUS", "5", 1);
  const auto gpus = ask();
  ASSERT_TRUE(gpus);
  EXPECT_THAT(gpus->uuids, ElementsAre("GPU-0000", "GPU-0001", "GPU-0002", "", "GPU-0003"));
}

TEST_F(NvmlTest, ADriverWithoutGpusHasNone) {
  const auto gpus = ask();
  ASSERT_TRUE(gpus);
  EXPECT_TRUE(gpus->uuids.empty());
}

TEST_F(NvmlTest, ADriverThatFailsOrCrashesIsNone) {
  ::setenv("FAKE_NVML_GPUS", "3", 1);
  ::setenv("FAKE_NVML_CRASHES", "1", 1);
  EXPECT_FALSE(ask());
  ::unsetenv("FAKE_NVML_CRASHES");
  ::setenv("FAKE_NVML_FAILS", "1", 1);
  const auto gpus = ask();  // the kernel module may know some, where there is one
  EXPECT_TRUE(!gpus || !gpus->uuids.empty());
}

TEST_F(NvmlTest, TheMachineHasUsableCpus) {
  const Machine machine = this_machines_devices();
  EXPECT_GE(usable_cpus(machine), 1);
  EXPECT_LE(usable_cpus(machine), machine.affinity);
}

}  // namespace
}  // namespace drun::launcher
