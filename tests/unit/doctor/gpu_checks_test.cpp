#include "doctor/gpu_checks.hpp"

#include <gtest/gtest.h>

#include "support/file_tree.hpp"

namespace drun::doctor {
namespace {

Verdict verdict_of(const GpuHealth& gpu) {
  return worst(judge_gpus(std::vector{gpu}, 1));
}

TEST(GpuChecksTest, WhatMustNotBeFails) {
  EXPECT_EQ(verdict_of({false, 0, false, false, false}), Verdict::Pass);
  EXPECT_EQ(verdict_of({}), Verdict::Pass) << "it does not tell";
  EXPECT_EQ(verdict_of({true, {}, {}, {}, {}}), Verdict::Fail);
  EXPECT_EQ(verdict_of({false, 1, false, false, false}), Verdict::Fail);
  EXPECT_EQ(verdict_of({false, 0, true, false, false}), Verdict::Fail);
  EXPECT_EQ(verdict_of({false, 0, false, true, false}), Verdict::Fail);
  EXPECT_EQ(verdict_of({false, 0, false, false, true}), Verdict::Fail);
}

TEST(GpuChecksTest, DevicesWithoutADriverFailAndNoDevicesAreNothing) {
  EXPECT_EQ(worst(judge_gpus({}, 8)), Verdict::Fail);
  EXPECT_TRUE(judge_gpus({}, 0).empty());
  EXPECT_EQ(worst(judge_gpus(std::vector<GpuHealth>(7), 8)), Verdict::Fail);
  EXPECT_EQ(judge_gpus(std::vector<GpuHealth>(8), 8).size(), 8U);
}

TEST(GpuChecksTest, CountsTheDevicesOfTheKernel) {
  test::FileTree files;
  for (const char* name : {"nvidia0", "nvidia11", "nvidiactl", "nvidia-uvm", "null"})
    files.write(std::string("/dev/") + name, "");
  EXPECT_EQ(count_gpu_devices(files.root()), 2);
  EXPECT_EQ(count_gpu_devices("/nonexistent"), 0);
}

}  // namespace
}  // namespace drun::doctor
