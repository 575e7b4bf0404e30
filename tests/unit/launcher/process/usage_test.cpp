#include "launcher/process/usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "support/temporary_directory.hpp"

namespace drun::process {
namespace {

using test::TemporaryDirectory;

class UsageTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(name)).parent_path());
    std::ofstream(folder_.file(name)) << text;
  }
  void write_all() const {
    // The name of a program may hold anything.
    write("stat", "42 (a) 7 (b) S 1 42 42 0 -1 4194560 2 3 4 5 150 50 25 25 20 0 3 0 9 8 7 6 5\n");
    write("status", "Name:\tx\nVmPeak:\t  99999 kB\nVmHWM:\t    2048 kB\nThreads:\t2\n");
    write("io", "rchar: 77\nread_bytes: 1048576\nwrite_bytes: 4096\n");
    write("task/42/status", "voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n");
    write("task/43/status", "voluntary_ctxt_switches:\t100\nnonvoluntary_ctxt_switches:\t1\n");
  }

  const TemporaryDirectory folder_;
};

TEST_F(UsageTest, WhatAProcessHasUsedSoFarIsReadFromItsFolder) {
  write_all();
  const auto usage = usage_so_far(folder_.file("."));
  ASSERT_TRUE(usage);
  const std::int64_t ticks = ::sysconf(_SC_CLK_TCK);
  EXPECT_EQ(*usage, (Usage{250 * 1'000 / ticks, 2'048, 1'024, 4, 111}));
}

TEST_F(UsageTest, OneThatIsGoneHasNone) {
  EXPECT_FALSE(usage_so_far(folder_.file(".")));
  write_all();
  std::filesystem::remove(folder_.file("io"));  // somebody else's
  EXPECT_FALSE(usage_so_far(folder_.file(".")));
}

TEST_F(UsageTest, OfThisProcessTheKernelSaysTheSameAsAtItsEnd) {
  const auto before = usage_so_far("/proc/self");
  ASSERT_TRUE(before);
  rusage kernels{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &kernels), 0);
  const Usage after = from_rusage(kernels);
  EXPECT_LE(before->cpu_ms, after.cpu_ms + 20) << "a tick of difference";
  EXPECT_GT(before->peak_kib, 0);
  EXPECT_LE(before->switches, after.switches);
}

}  // namespace
}  // namespace drun::process
