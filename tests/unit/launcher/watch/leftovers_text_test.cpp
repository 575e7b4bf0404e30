#include "launcher/watch/leftovers_text.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(LeftoversTextTest, WhatWasRemovedIsNamedUpToThreeFiles) {
  constexpr std::uint64_t kBytes = std::uint64_t{20} << 30;
  std::vector<std::string> names;
  EXPECT_EQ(swept_text({names, 0}), "");
  names.emplace_back("torch_1");
  EXPECT_EQ(swept_text({names, kBytes}),
            "removed 1 file (20 GiB) that the workers left in /dev/shm: torch_1");
  names.insert(names.end(), {"torch_2", "torch_3"});
  EXPECT_EQ(swept_text({names, 300}),
            "removed 3 files (300 B) that the workers left in /dev/shm: torch_1, torch_2, torch_3");
  names.emplace_back("torch_4");
  EXPECT_EQ(swept_text({names, 300}),
            "removed 4 files (300 B) that the workers left in /dev/shm: torch_1, torch_2, torch_3, "
            "...");
}

TEST(LeftoversTextTest, AWaitForGpusIsWorthALineIfItWasLongOrInVain) {
  const seconds limit(10);
  EXPECT_EQ(gpu_note({true, -1, 0}, milliseconds(999), limit).text, "");
  const GpuNote waited = gpu_note({true, -1, 0}, milliseconds(1'000), limit);
  EXPECT_FALSE(waited.warns);
  EXPECT_EQ(waited.text, "waited 1.0 s until the GPUs had given back the memory of the last round");
  const GpuNote kept = gpu_note({true, 3, 4711}, limit, limit);
  EXPECT_TRUE(kept.warns);
  EXPECT_THAT(kept.text, HasSubstr("GPU 3 has not given back the memory of process 4711"));
  EXPECT_THAT(kept.text, HasSubstr("within 10.0 s"));
  const GpuNote silent = gpu_note({false, -1, 0}, milliseconds(1), limit);
  EXPECT_TRUE(silent.warns);
  EXPECT_THAT(silent.text, HasSubstr("nobody waits for it again"));
}

}  // namespace
}  // namespace drun::launcher
