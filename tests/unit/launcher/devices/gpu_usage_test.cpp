#include "launcher/devices/gpu_usage.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/devices/gpu_ledger.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Workers 10 and 20 below 5; a shell of 20 has 21 and that 22; 30 is a stranger's.
pid_t parent(pid_t pid) {
  const std::map<pid_t, pid_t> parents{{10, 5}, {20, 5}, {21, 20}, {22, 21}, {30, 1}, {5, 1}};
  const auto found = parents.find(pid);
  return found == parents.end() ? 0 : found->second;
}

std::vector<WorkerOnGpus> shares(const std::vector<GpuProcess>& processes) {
  return by_worker(processes, {10, 20}, parent);
}

TEST(GpuUsageTest, WhatIsBelowAWorkerIsTheWorkers) {
  EXPECT_THAT(shares({{0, 10, 100, 30}, {1, 22, 200, 50}, {0, 30, 400, 90}, {0, 99, 400, 90}}),
              ElementsAre(WorkerOnGpus{10, 100, 30}, WorkerOnGpus{20, 200, 50}));
  EXPECT_THAT(shares({{0, 5, 100, 30}}), IsEmpty()) << "what is above them is nobody's";
  EXPECT_THAT(by_worker({{0, 7, 1, 1}}, {10}, [](pid_t pid) { return pid == 7 ? 8 : 7; }),
              IsEmpty())
      << "a ring";
}

TEST(GpuUsageTest, MemoryIsASumAndUseTheMeanOfTheGpus) {
  EXPECT_THAT(shares({{0, 10, 100, 30}, {1, 10, 200, 51}}), ElementsAre(WorkerOnGpus{10, 300, 41}));
  EXPECT_THAT(shares({{0, 21, 100, 30}, {0, 22, 200, 50}}), ElementsAre(WorkerOnGpus{20, 300, 80}));
  EXPECT_THAT(shares({{0, 21, 100, 70}, {0, 22, 200, 50}}),
              ElementsAre(WorkerOnGpus{20, 300, 100}));
  EXPECT_THAT(shares({{0, 10, 100, 30}, {0, 10, 200, 30}}), ElementsAre(WorkerOnGpus{10, 300, 30}))
      << "slices of one GPU";
}

TEST(GpuUsageTest, WhatTheDriverDoesNotKnowIsNotKnown) {
  EXPECT_THAT(shares({{0, 10, -1, -1}}), ElementsAre(WorkerOnGpus{10, -1, -1}));
  EXPECT_THAT(shares({{0, 10, -1, 30}, {1, 10, 100, -1}}), ElementsAre(WorkerOnGpus{10, 100, 30}));
}

TEST(GpuUsageTest, WhatTheHelperSaysIsReadExactly) {
  EXPECT_EQ(encode_gpu_question({10, 20}), "10 20\n");
  for (const char* text :
       {"unknown\n", "sample\n", "sample 10:100:30\n", "sample 10:0:0 20:-1:-1\n"})
    EXPECT_EQ(encode(decode_gpu_sample(text).value()), text);
  for (const char* text : {"", "unknown", "sample", "samples\n", "sample 10\n", "sample 10:1\n",
                           "sample 10:1:2:3\n", "sample 10:1:101\n", "sample 10:-2:1\n",
                           "sample 0:1:1\n", "sample 10:1:1\n\n", "sample x:1:1\n"})
    EXPECT_FALSE(decode_gpu_sample(text)) << text;
}

TEST(GpuLedgerTest, KeepsThePeakAndTheMean) {
  GpuLedger ledger;
  EXPECT_EQ(ledger.of(1, 10), GpuUse());
  ledger.note(1, {true, {{10, 100, 30}, {20, -1, -1}}});
  ledger.note(1, {true, {{10, 300, 41}}});
  ledger.note(1, {true, {{10, 200, -1}}});
  EXPECT_EQ(ledger.of(1, 10), (GpuUse{300, 36}));
  EXPECT_EQ(ledger.of(1, 20), GpuUse()) << "of which the driver knows nothing";
  EXPECT_EQ(ledger.of(1, 30), GpuUse());
}

TEST(GpuLedgerTest, ARoundHasItsOwn) {
  GpuLedger ledger;
  ledger.note(1, {true, {{10, 100, 30}, {20, 100, 30}}});
  EXPECT_EQ(ledger.of(2, 10), GpuUse()) << "another process, with the same number";
  ledger.note(2, {true, {{10, 50, 10}}});
  EXPECT_EQ(ledger.of(2, 10), (GpuUse{50, 10}));
  EXPECT_EQ(ledger.of(2, 20), GpuUse());
  ledger.note(1, {true, {{10, 100, 30}}});  // late
  EXPECT_EQ(ledger.of(2, 10), (GpuUse{50, 10}));
  EXPECT_EQ(ledger.of(1, 10), GpuUse());
}

}  // namespace
}  // namespace drun::launcher
