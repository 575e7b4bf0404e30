#include "launcher/devices/binding.hpp"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cpu_list.hpp"
#include "launcher/devices/device_request.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// hwloc's synthetic machines. Logical CPUs are numbered core by core.
constexpr const char* kTwoSockets = "package:2 numa:1 l3:1 core:8 pu:2";  // 32 CPUs
constexpr const char* kFourNodes = "package:2 numa:2 l3:1 core:4 pu:1";   // 16 CPUs
constexpr const char* kComplexes = "package:1 numa:2 l3:4 core:2 pu:1";   // 16 CPUs, 8 caches
constexpr const char* kOneNode = "package:1 numa:1 l2:1 core:5 pu:1";     // 5 CPUs

Topology synthetic(const std::string& description) {
  auto topology = read_topology(description);
  EXPECT_TRUE(topology.ok()) << topology.error().what();
  return topology.ok() ? *topology : Topology();
}

std::vector<int> all_cpus(const Topology& topology) {
  std::vector<int> result;
  for (const auto& cpu : topology.cpus)
    result.push_back(cpu.number);
  return result;
}

BindingInput input(NumaBinding binding, const std::string& machine, int workers,
                   std::vector<int> device_nodes = {}) {
  BindingInput result;
  result.binding = binding;
  result.topology = synthetic(machine);
  result.allowed = all_cpus(result.topology);
  result.workers = workers;
  result.device_nodes = std::move(device_nodes);
  return result;
}

// "0-3/0": CPUs and memory nodes of each worker; the error's text when there is one.
std::vector<std::string> bound(const BindingInput& request) {
  const auto bindings = bind_workers(request);
  if (!bindings) {
    EXPECT_THAT(bindings.error().what(), Not(HasSubstr("\n")));
    const char* const flag = flag_of(bindings.error());
    return {(flag == nullptr ? "" : "--" + std::string(flag)) + bindings.error().what()};
  }
  std::vector<std::string> result;
  for (const auto& binding : *bindings) {
    result.push_back(format_cpu_list(binding.cpus) + "/" + format_cpu_list(binding.memory_nodes));
  }
  return result;
}

using List = std::vector<std::string>;
using enum NumaBinding;

TEST(TopologyTest, OfASyntheticMachineIsWhatItsDescriptionSays) {
  const auto topology = synthetic(kTwoSockets);
  ASSERT_EQ(topology.cpus.size(), 32U);
  EXPECT_EQ(topology.cpus[0], (TopologyCpu{0, 0, 0, 0, 0}));
  EXPECT_EQ(topology.cpus[1], (TopologyCpu{1, 0, 0, 0, 0}));
  EXPECT_EQ(topology.cpus[3], (TopologyCpu{3, 2, 0, 0, 0}));
  EXPECT_EQ(topology.cpus[31], (TopologyCpu{31, 30, 16, 1, 1}));
  const auto complexes = synthetic(kComplexes);
  EXPECT_EQ(complexes.cpus[9], (TopologyCpu{9, 9, 8, 1, 0}));
  EXPECT_EQ(complexes.cpus[10], (TopologyCpu{10, 10, 10, 1, 0}));
}

TEST(TopologyTest, WithoutCachesThePackageStandsForThem) {
  const auto topology = synthetic("package:2 core:2 pu:1");
  ASSERT_EQ(topology.cpus.size(), 4U);
  EXPECT_EQ(topology.cpus[1].cache, 0);
  EXPECT_EQ(topology.cpus[3].cache, 2);
}

TEST(TopologyTest, RefusesADescriptionThatIsNone) {
  const auto topology = read_topology("nonsense");
  ASSERT_FALSE(topology.ok());
  EXPECT_THAT(topology.error().what(), HasSubstr("not a synthetic topology"));
}

TEST(TopologyTest, OfThisMachineHoldsOurOwnCpus) {
  const auto topology = read_topology();
  ASSERT_TRUE(topology.ok()) << topology.error().what();
  EXPECT_FALSE(topology->cpus.empty());
  for (const auto& cpu : topology->cpus) {
    EXPECT_LE(cpu.core, cpu.number);
    EXPECT_LE(cpu.cache, cpu.core);
    EXPECT_GE(cpu.node, 0);
    EXPECT_GE(cpu.package, 0);
  }
}

TEST(BindToDevicesTest, NodeIsTheDevicesNumaNode) {
  EXPECT_EQ(bound(input(Node, kTwoSockets, 4, {0, 0, 1, 1})),
            (List{"0-15/0", "0-15/0", "16-31/1", "16-31/1"}));
  EXPECT_EQ(bound(input(Node, kFourNodes, 2, {3, 1})), (List{"12-15/3", "4-7/1"}));
  // The kernel does not know: node 0.
  EXPECT_EQ(bound(input(Node, kTwoSockets, 2, {-1, 1})), (List{"0-15/0", "16-31/1"}));
}

TEST(BindToDevicesTest, SocketIsAllNodesOfThePackage) {
  EXPECT_EQ(bound(input(Socket, kFourNodes, 3, {1, 2, 0})),
            (List{"0-7/0-1", "8-15/2-3", "0-7/0-1"}));
}

TEST(BindToDevicesTest, ExclusiveDividesTheNodesCoresAmongItsVisibleDevices) {
  // 8 cores with two CPUs each; three devices: 3, 3 and 2 cores.
  EXPECT_EQ(bound(input(Exclusive, kTwoSockets, 4, {0, 0, 0, 1})),
            (List{"0-5/0", "6-11/0", "12-15/0", "16-31/1"}));
  // A device that no worker uses keeps its share, as with torchrun.
  EXPECT_EQ(bound(input(Exclusive, kTwoSockets, 1, {0, 0})), (List{"0-7/0"}));
  // In the order of the devices, whatever lies between.
  EXPECT_EQ(bound(input(Exclusive, kFourNodes, 4, {1, 0, 1, 0})),
            (List{"4-5/1", "0-1/0", "6-7/1", "2-3/0"}));
}

TEST(BindToDevicesTest, ExclusiveWithFewerCoresThanDevicesIsAnError) {
  EXPECT_EQ(bound(input(Exclusive, kFourNodes, 5, {0, 0, 0, 0, 0})),
            (List{"--numa-binding exclusive: NUMA node 0 has 4 usable cores for 5 devices; use "
                  "node instead"}));
}

TEST(BindToDevicesTest, CoreComplexGivesEachDeviceACacheRoundRobin) {
  EXPECT_EQ(bound(input(CoreComplex, kComplexes, 4, {0, 1, 0, 1})),
            (List{"0-1/0", "8-9/1", "2-3/0", "10-11/1"}));
  EXPECT_EQ(bound(input(CoreComplex, kComplexes, 6, {0, 0, 0, 0, 0, 0})),
            (List{"0-1/0", "2-3/0", "4-5/0", "6-7/0", "0-1/0", "2-3/0"}));
}

TEST(BindToDevicesTest, CoreComplexTakesTheBiggestFirst) {
  auto request = input(CoreComplex, kComplexes, 3, {0, 0, 0});
  request.allowed = {1, 2, 4, 5, 7};  // caches of one, one, two and one usable CPUs
  EXPECT_EQ(bound(request), (List{"4-5/0", "1/0", "2/0"}));
}

TEST(BindToDevicesTest, StaysWithinTheOwnAffinity) {
  auto request = input(Node, kTwoSockets, 2, {0, 1});
  request.allowed = {2, 3, 20};
  EXPECT_EQ(bound(request), (List{"2-3/0", "20/1"}));
  request.binding = Exclusive;
  request.device_nodes = {0, 0};
  EXPECT_EQ(bound(request),
            (List{"--numa-binding exclusive: NUMA node 0 has 1 usable core for 2 devices; use "
                  "node instead"}));
  request.allowed = {0, 1, 2, 3};
  request.device_nodes = {0, 1};
  EXPECT_EQ(bound(request), (List{"--numa-binding exclusive: device 1 is at NUMA node 1, of which "
                                  "drun may use no CPU: its own are 0-3"}));
}

TEST(BindToDevicesTest, AHalfAllowedCoreIsACore) {
  auto request = input(Exclusive, kTwoSockets, 2, {0, 0});
  request.allowed = {1, 2};
  EXPECT_EQ(bound(request), (List{"1/0", "2/0"}));
}

TEST(BindWithoutDevicesTest, NodeAndSocketSpreadInBlocks) {
  EXPECT_EQ(bound(input(Node, kFourNodes, 8)),
            (List{"0-3/0", "0-3/0", "4-7/1", "4-7/1", "8-11/2", "8-11/2", "12-15/3", "12-15/3"}));
  EXPECT_EQ(bound(input(Socket, kFourNodes, 4)),
            (List{"0-7/0-1", "0-7/0-1", "8-15/2-3", "8-15/2-3"}));
  // More workers in the first nodes when they do not come out even.
  EXPECT_EQ(bound(input(Node, kTwoSockets, 3)), (List{"0-15/0", "0-15/0", "16-31/1"}));
}

TEST(BindWithoutDevicesTest, FewerWorkersThanNodesAreSpreadEvenly) {
  EXPECT_EQ(bound(input(Node, kFourNodes, 1)), (List{"0-3/0"}));
  EXPECT_EQ(bound(input(Node, kFourNodes, 2)), (List{"0-3/0", "8-11/2"}));
  EXPECT_EQ(bound(input(Node, kFourNodes, 3)), (List{"0-3/0", "4-7/1", "8-11/2"}));
}

TEST(BindWithoutDevicesTest, NodesGetWorkersAsTheirUsableCoresAllow) {
  auto request = input(Node, kTwoSockets, 4);
  request.allowed.resize(16);                                   // 8 cores of node 0
  request.allowed.insert(request.allowed.end(), {16, 18, 19});  // 2 cores of node 1
  EXPECT_EQ(bound(request), (List{"0-15/0", "0-15/0", "0-15/0", "16,18-19/1"}));
  request.allowed = {20, 21};
  EXPECT_EQ(bound(request), (List(4, "20-21/1")));
}

TEST(BindWithoutDevicesTest, ExclusiveDividesAllCores) {
  EXPECT_EQ(bound(input(Exclusive, kTwoSockets, 2)), (List{"0-15/0", "16-31/1"}));
  EXPECT_EQ(bound(input(Exclusive, kTwoSockets, 3)), (List{"0-11/0", "12-21/0-1", "22-31/1"}));
  EXPECT_EQ(bound(input(Exclusive, kOneNode, 3)), (List{"0-1/0", "2-3/0", "4/0"}));
  EXPECT_EQ(bound(input(Exclusive, kOneNode, 6)),
            (List{"--numa-binding exclusive: 5 usable cores for 6 workers; start fewer, "
                  "or use node"}));
}

// As most machines with two threads a core number them: 0 and 4 are one core.
TEST(BindWithoutDevicesTest, CpusAreInTheOrderOfTheirNumbers) {
  const auto bindings =
      bind_workers(input(Exclusive, "package:1 numa:1 core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", 2));
  ASSERT_TRUE(bindings);
  EXPECT_EQ(bindings->at(0).cpus, (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(bindings->at(1).cpus, (std::vector<int>{2, 3, 6, 7}));
}

TEST(BindWithoutDevicesTest, CoreComplexSpreadsOverNodesThenCaches) {
  EXPECT_EQ(bound(input(CoreComplex, kComplexes, 4)), (List{"0-1/0", "2-3/0", "8-9/1", "10-11/1"}));
  EXPECT_EQ(bound(input(CoreComplex, kComplexes, 2)), (List{"0-1/0", "8-9/1"}));
  EXPECT_EQ(bound(input(CoreComplex, kOneNode, 2)), (List{"0-4/0", "0-4/0"}));
}

TEST(BindWithoutDevicesTest, IsAlsoForMoreWorkersThanDevices) {
  EXPECT_EQ(bound(input(Node, kTwoSockets, 4, {1, 1})),
            (List{"0-15/0", "0-15/0", "16-31/1", "16-31/1"}));
}

TEST(BindWorkersTest, NoBindingLeavesWorkersAlone) {
  EXPECT_EQ(bound(input(None, kTwoSockets, 2, {0, 1})), (List{"/", "/"}));
}

TEST(BindWorkersTest, RefusesATopologyWithoutOurCpus) {
  auto request = input(Node, kOneNode, 1);
  request.allowed = {100};
  EXPECT_EQ(bound(request),
            (List{"--numa-binding node: hwloc lists none of the CPUs that drun may use: 100"}));
}

TEST(BindWorkersTest, KeepsMemoryWithinWhatIsAllowed) {
  auto request = input(Socket, kFourNodes, 1);
  request.allowed_memory = std::vector<int>{1, 3};
  EXPECT_EQ(bound(request), (List{"0-7/1"}));
}

// Whatever the machine and the mode, exclusive shares never overlap, all CPUs are allowed ones, and
// nobody gets nothing.
TEST(BindWorkersTest, SharesAreSoundOnManyMachines) {
  for (const char* machine : {kTwoSockets, kFourNodes, kComplexes, kOneNode, "core:1 pu:1"}) {
    for (const auto mode : {Node, Socket, Exclusive, CoreComplex}) {
      for (int workers = 1; workers <= 24; ++workers) {
        for (const int stride : {1, 2, 3}) {
          auto request = input(mode, machine, workers);
          std::vector<int> allowed;
          for (std::size_t i = 0; i < request.allowed.size(); i += static_cast<std::size_t>(stride))
            allowed.push_back(request.allowed[i]);
          request.allowed = allowed;
          const auto bindings = bind_workers(request);
          if (!bindings) {
            EXPECT_EQ(mode, Exclusive);
            continue;
          }
          ASSERT_EQ(bindings->size(), static_cast<std::size_t>(workers));
          std::vector<int> together;
          for (const auto& binding : *bindings) {
            EXPECT_FALSE(binding.cpus.empty());
            EXPECT_EQ(common_numbers(binding.cpus, allowed), binding.cpus);
            EXPECT_GT(binding.cores, 0);
            together.insert(together.end(), binding.cpus.begin(), binding.cpus.end());
          }
          std::sort(together.begin(), together.end());
          const bool unique =
              std::adjacent_find(together.begin(), together.end()) == together.end();
          if (mode == Exclusive) {
            EXPECT_TRUE(unique) << machine;
            EXPECT_EQ(together, allowed) << machine;
          }
        }
      }
    }
  }
}

TEST(DescribeTest, SaysCpusCoresAndNodes) {
  EXPECT_EQ(describe(WorkerBinding{}), "any CPU");
  EXPECT_EQ(describe(WorkerBinding{{3}, {0}, 1}), "CPU 3 (1 core) of NUMA node 0");
  EXPECT_EQ(describe(WorkerBinding{{0, 1, 2, 3, 16}, {0, 1}, 3}),
            "CPUs 0-3,16 (3 cores) of NUMA nodes 0-1");
  EXPECT_EQ(describe(WorkerBinding{{0, 1}, {}, 2}), "CPUs 0-1 (2 cores)");
}

// `cpus` CPUs, `threads` of which make up a core.
std::map<int, int> cores(int cpus, int threads) {
  std::map<int, int> result;
  for (int cpu = 0; cpu < cpus; ++cpu)
    result[cpu] = cpu - cpu % threads;
  return result;
}

TEST(ThreadsTest, AreTheUsableCoresDividedByTheWorkers) {
  const struct {
    std::map<int, int> cores;
    std::optional<double> quota;
    int workers;
    int threads;
  } cases[] = {
      {cores(8, 1), std::nullopt, 2, 4},  {cores(8, 1), std::nullopt, 3, 2},
      {cores(16, 2), std::nullopt, 2, 4}, {cores(2, 1), std::nullopt, 8, 1},
      {cores(9, 1), std::nullopt, 3, 3},  {cores(49, 1), std::nullopt, 7, 7},
      {cores(8, 1), 4.0, 2, 2},           {cores(8, 1), 3.5, 2, 1},
      {cores(8, 1), 0.5, 1, 1},           {cores(8, 1), 64.0, 1, 8},
  };
  for (const auto& each : cases) {
    const auto threads = divide_threads(each.cores, {}, each.quota, each.workers);
    EXPECT_EQ(threads, std::vector<int>(static_cast<std::size_t>(each.workers), each.threads))
        << each.cores.size() << " CPUs, " << each.workers << " workers";
  }
}

TEST(ThreadsTest, CountWithinTheBinding) {
  const auto shared = bind_workers(input(Node, kTwoSockets, 3));
  ASSERT_TRUE(shared.ok());
  EXPECT_THAT(divide_threads(cores(32, 2), *shared, std::nullopt, 3), ElementsAre(4, 4, 8));
  const auto own = bind_workers(input(Exclusive, kTwoSockets, 3));
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(divide_threads(cores(32, 2), *own, std::nullopt, 3), ElementsAre(6, 5, 5));
  EXPECT_THAT(divide_threads(cores(32, 2), *own, 6.0, 3), ElementsAre(2, 2, 2));
}

}  // namespace
}  // namespace drun::launcher
