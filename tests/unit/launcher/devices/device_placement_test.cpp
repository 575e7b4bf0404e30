#include "launcher/devices/device_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/usable_cpus.hpp"
#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Two sockets of 8 cores, two NVIDIA GPUs at each.
MachineFacts facts() {
  MachineFacts result;
  for (int cpu = 0; cpu < 16; ++cpu) {
    result.usable.cpus.push_back(cpu);
    result.cores[cpu] = cpu;
  }
  for (int i = 0; i < 4; ++i) {
    result.inventory.nvidia.push_back({Vendor::Nvidia, i, "GPU-" + std::to_string(i),
                                       "0000:0" + std::to_string(i) + ":00.0", i / 2,
                                       std::to_string(i)});
  }
  result.topology = read_topology("package:2 numa:1 core:8 pu:1");
  return result;
}

std::vector<std::string> descriptions(const Result<Placement>& placement) {
  if (!placement) return {placement.error().what()};
  std::vector<std::string> result;
  for (const auto& agent : placement->agents)
    for (const auto& worker : agent)
      result.push_back(worker.description);
  return result;
}

TEST(PlacementTest, OfAPlainJobChangesNothing) {
  PlacementRequest request;
  request.devices.workers = 3;
  const auto placement = place_workers(request, {}, {});
  ASSERT_TRUE(placement.ok()) << placement.error().what();
  ASSERT_EQ(placement->agents.size(), 1U);
  ASSERT_EQ(placement->agents[0].size(), 3U);
  for (const auto& worker : placement->agents.at(0)) {
    EXPECT_THAT(worker.cpus, IsEmpty());
    EXPECT_THAT(worker.memory_nodes, IsEmpty());
    EXPECT_THAT(worker.environment, IsEmpty());
    EXPECT_EQ(worker.threads, std::nullopt);
    EXPECT_EQ(worker.description, "any CPU");
  }
}

// What is not asked for is not looked at: it takes time at every start.
TEST(PlacementTest, OfThisMachineOnlyWhatIsNeededIsRead) {
  PlacementRequest request;
  const auto plain = read_machine(request, {});
  EXPECT_THAT(plain.usable.cpus, Not(IsEmpty()));
  EXPECT_FALSE(plain.memory_nodes);
  EXPECT_FALSE(plain.topology);
  EXPECT_THAT(plain.cores, IsEmpty());
  request.binding = NumaBinding::Node;
  request.divide_threads = true;
  const auto bound = read_machine(request, {});
  EXPECT_EQ(bound.memory_nodes, read_allowed_memory_nodes(""));
  EXPECT_TRUE(bound.memory_nodes);
  EXPECT_TRUE(bound.topology);
  EXPECT_THAT(bound.cores, Not(IsEmpty()));
}

TEST(PlacementTest, BindsEachWorkerWhereItsGpuIs) {
  PlacementRequest request;
  request.devices.gpus = "1,3";
  request.devices.virtual_local_rank = true;
  request.binding = NumaBinding::Node;
  request.divide_threads = true;
  const auto placement = place_workers(request, facts(), {});
  ASSERT_TRUE(placement.ok()) << placement.error().what();
  ASSERT_EQ(placement->agents.at(0).size(), 2U);
  const auto& second = placement->agents.at(0)[1];
  EXPECT_THAT(second.cpus, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(second.memory_nodes, ElementsAre(1));
  EXPECT_THAT(second.environment,
              ElementsAre("CUDA_VISIBLE_DEVICES=3", "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_EQ(second.threads, 8);
  EXPECT_THAT(descriptions(placement),
              ElementsAre("GPU 1 (0000:01:00.0); CPUs 0-7 (8 cores) of NUMA node 0; 8 OpenMP "
                          "threads",
                          "GPU 3 (0000:03:00.0); CPUs 8-15 (8 cores) of NUMA node 1; 8 OpenMP "
                          "threads"));
}

TEST(PlacementTest, SaysWhereEachRankIs) {
  PlacementRequest request;
  request.devices.workers = 2;
  request.show_devices = true;
  const auto placement = place_workers(request, facts(), {});
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement_lines(*placement, 0, 4),
              ElementsAre("rank 4 (local rank 0): GPU 0 (0000:00:00.0); CPUs 0-15 (not bound)",
                          "rank 5 (local rank 1): GPU 1 (0000:01:00.0); CPUs 0-15 (not bound)"));
  EXPECT_THAT(placement_lines(Placement(), 0, 0), IsEmpty());
}

TEST(PlacementTest, AgentsOfOneMachineShareItsCpusButNotThoseOfAGpu) {
  PlacementRequest request;
  request.devices.workers = 2;
  request.binding = NumaBinding::Exclusive;
  request.agents = 2;
  request.divide_threads = true;
  auto machine = facts();
  const auto by_gpu = place_workers(request, machine, {});
  ASSERT_TRUE(by_gpu.ok());
  ASSERT_EQ(by_gpu->agents.size(), 2U);
  ASSERT_EQ(by_gpu->agents[1].size(), 2U);
  EXPECT_EQ(by_gpu->of(1, 1).cpus, by_gpu->of(0, 1).cpus);
  EXPECT_EQ(by_gpu->of(1, 1).threads, 2);
  machine.inventory = {};
  const auto by_cpu = place_workers(request, machine, {});
  ASSERT_TRUE(by_cpu.ok());
  EXPECT_THAT(by_cpu->of(0, 1).cpus, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(by_cpu->of(1, 1).cpus, ElementsAre(12, 13, 14, 15));
  EXPECT_THAT(by_cpu->of(-1, 0).cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(by_cpu->of(2, 0).cpus, IsEmpty());
}

TEST(PlacementTest, CpuWorkersIgnoreTheGpus) {
  PlacementRequest request;
  request.devices.workers = CountedBy::Cpu;
  request.binding = NumaBinding::Exclusive;
  auto machine = facts();
  machine.inventory = {};
  machine.usable.quota = 2.5;
  const auto placement = place_workers(request, machine, {});
  EXPECT_THAT(descriptions(placement), ElementsAre("CPUs 0-7 (8 cores) of NUMA node 0",
                                                   "CPUs 8-15 (8 cores) of NUMA node 1"));
}

TEST(PlacementTest, MoreWorkersThanGpusAreSpreadAndSaidToBe) {
  PlacementRequest request;
  request.devices.workers = 8;
  request.binding = NumaBinding::Exclusive;
  const auto placement = place_workers(request, facts(), {});
  ASSERT_TRUE(placement.ok());
  EXPECT_THAT(placement->agents.at(0)[7].cpus, ElementsAre(14, 15));
  EXPECT_THAT(placement->notes, ElementsAre(HasSubstr("8 workers for 4 visible GPUs")));
}

TEST(PlacementTest, UncheckedGpusAreBoundAsNone) {
  PlacementRequest request;
  request.devices.gpus = "0,1";
  request.binding = NumaBinding::Node;
  auto machine = facts();
  machine.inventory = {};
  const auto placement = place_workers(request, machine, {});
  EXPECT_THAT(descriptions(placement),
              ElementsAre("GPU 0 of 0,1; CPUs 0-7 (8 cores) of NUMA node 0",
                          "GPU 1 of 0,1; CPUs 8-15 (8 cores) of NUMA node 1"));
}

TEST(PlacementTest, PassesErrorsOn) {
  PlacementRequest request;
  request.devices.workers = 4;
  request.binding = NumaBinding::Node;
  auto machine = facts();
  machine.topology = Error(std::make_error_code(std::errc::no_such_file_or_directory),
                           "install the Debian package libhwloc15");
  EXPECT_THAT(descriptions(place_workers(request, machine, {})),
              ElementsAre("install the Debian package libhwloc15"));
  request.devices.workers = CountedBy::Gpu;
  EXPECT_THAT(descriptions(place_workers(request, machine, {"CUDA_VISIBLE_DEVICES="})),
              ElementsAre(HasSubstr("leaves none of 4 NVIDIA GPUs")));
}

TEST(PlacementTest, ReadsTheCoresOfHyperthreads) {
  test::FileTree tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    tree.write(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  EXPECT_THAT(read_cores(tree.root(), {0, 1, 2, 3, 9}),
              (std::map<int, int>{{0, 0}, {1, 1}, {2, 0}, {3, 1}, {9, 9}}));
}

TEST(PlacementTest, OfThisMachineIsSound) {
  PlacementRequest request;
  request.devices.workers = CountedBy::Cpu;
  request.binding = NumaBinding::Exclusive;
  request.divide_threads = true;
  const UsableCpus usable{own_affinity(), read_cpu_quota("")};
  const auto placement = plan_placement(request, {});
  if (!placement) {  // hyperthreads: more usable CPUs than cores
    EXPECT_THAT(placement.error().what(), HasSubstr("usable core"));
    return;
  }
  EXPECT_EQ(placement->agents.at(0).size(), static_cast<std::size_t>(usable.count()));
  for (const auto& worker : placement->agents.at(0))
    EXPECT_GE(worker.threads.value_or(0), 1);
}

}  // namespace
}  // namespace drun::launcher
