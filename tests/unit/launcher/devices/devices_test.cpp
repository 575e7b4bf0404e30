#include "launcher/devices/devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kCpus = 6;  // usable ones

Device gpu(Vendor vendor, int number) {
  return {vendor,
          number,
          vendor == Vendor::Nvidia ? "GPU-" + std::string(2, static_cast<char>('a' + number)) : "",
          "0000:" + std::to_string(10 + number) + ":00.0",
          number / 4,
          std::to_string(number)};
}

DeviceInventory machine(Vendor vendor, int count) {
  DeviceInventory inventory;
  auto& list = vendor == Vendor::Nvidia ? inventory.nvidia
               : vendor == Vendor::Amd  ? inventory.amd
                                        : inventory.intel;
  for (int i = 0; i < count; ++i)
    list.push_back(gpu(vendor, i));
  inventory.nvidia_driver = vendor == Vendor::Nvidia;
  return inventory;
}

DeviceRequest workers(std::optional<WorkerCount> count) {
  DeviceRequest request;
  request.workers = count;
  return request;
}
DeviceRequest gpus(const std::string& list) {
  DeviceRequest request;
  request.gpus = list;
  return request;
}
DeviceRequest with_virtual(DeviceRequest request) {
  request.virtual_local_rank = true;
  return request;
}

// The variables of each local rank, joined with blanks.
std::vector<std::string> masks(const DevicePlan& plan) {
  std::vector<std::string> result;
  for (const auto& worker : plan.environment) {
    std::string text;
    for (const auto& entry : worker)
      text += (text.empty() ? "" : " ") + entry;
    result.push_back(text);
  }
  return result;
}

std::string error_of(const Result<DevicePlan>& plan) {
  EXPECT_FALSE(plan.ok());
  if (plan.ok()) return "";
  EXPECT_THAT(plan.error().what(), Not(HasSubstr("\n")));
  const char* const flag = flag_of(plan.error());
  return (flag == nullptr ? "" : "--" + std::string(flag)) + plan.error().what();
}

TEST(WorkerCountTest, FollowsTheWordAndTheMachine) {
  const auto nvidia = machine(Vendor::Nvidia, 8);
  const auto amd = machine(Vendor::Amd, 4);
  const auto intel = machine(Vendor::Intel, 3);
  const DeviceInventory nothing;
  const struct {
    std::optional<WorkerCount> asked;
    const DeviceInventory& inventory;
    std::vector<std::string> environment;
    int count;
  } cases[] = {
      {std::nullopt, nvidia, {}, 1},
      {1, nvidia, {}, 1},
      {12, nothing, {}, 12},
      {CountedBy::Cpu, nvidia, {}, kCpus},
      {CountedBy::Gpu, nvidia, {}, 8},
      {CountedBy::Gpu, nvidia, {"CUDA_VISIBLE_DEVICES=3,5"}, 2},
      {CountedBy::Gpu, amd, {}, 4},
      {CountedBy::Gpu, amd, {"ROCR_VISIBLE_DEVICES=0,1"}, 2},
      {CountedBy::Gpu, amd, {"HIP_VISIBLE_DEVICES=2"}, 1},
      {CountedBy::Xpu, intel, {}, 3},
      {CountedBy::Xpu, intel, {"ZE_AFFINITY_MASK=0,2"}, 2},
      {CountedBy::Auto, nvidia, {}, 8},
      {CountedBy::Auto, nvidia, {"CUDA_VISIBLE_DEVICES=1"}, 1},
      {CountedBy::Auto, nvidia, {"CUDA_VISIBLE_DEVICES="}, kCpus},
      {CountedBy::Auto, amd, {}, 4},
      {CountedBy::Auto, intel, {}, 3},
      {CountedBy::Auto, nothing, {}, kCpus},
  };
  for (const auto& each : cases) {
    const auto plan = plan_devices(workers(each.asked), each.inventory, each.environment, kCpus);
    SCOPED_TRACE(each.count);
    ASSERT_TRUE(plan.ok()) << plan.error().what();
    EXPECT_EQ(plan->workers, each.count);
    EXPECT_EQ(plan->environment.size(), static_cast<std::size_t>(each.count));
    EXPECT_EQ(plan->descriptions.size(), static_cast<std::size_t>(each.count));
    for (const auto& worker : plan->environment)
      EXPECT_THAT(worker, IsEmpty());
  }
}

TEST(WorkerCountTest, SaysWhyThereIsNone) {
  const auto nvidia = machine(Vendor::Nvidia, 8);
  const struct {
    CountedBy what;
    const DeviceInventory& inventory;
    std::vector<std::string> environment;
    const char* error;
  } cases[] = {
      {CountedBy::Gpu, {}, {}, "--nproc-per-node 'gpu': no NVIDIA or AMD GPU found"},
      {CountedBy::Xpu, {}, {}, "--nproc-per-node 'xpu': no Intel GPU found"},
      {CountedBy::Xpu, nvidia, {}, "--nproc-per-node 'xpu': no Intel GPU found"},
      {CountedBy::Gpu,
       machine(Vendor::Intel, 2),
       {},
       "--nproc-per-node 'gpu': no NVIDIA or AMD GPU found"},
      {CountedBy::Gpu,
       nvidia,
       {"CUDA_VISIBLE_DEVICES=9"},
       "--nproc-per-node 'gpu': CUDA_VISIBLE_DEVICES=9 leaves none of 8 NVIDIA GPUs"},
      {CountedBy::Gpu,
       machine(Vendor::Amd, 2),
       {"ROCR_VISIBLE_DEVICES=7"},
       "--nproc-per-node 'gpu': ROCR_VISIBLE_DEVICES=7 leaves none of 2 AMD GPUs"},
      {CountedBy::Xpu,
       machine(Vendor::Intel, 2),
       {"ZE_AFFINITY_MASK=5"},
       "--nproc-per-node 'xpu': ZE_AFFINITY_MASK=5 leaves none of 2 Intel GPUs"},
  };
  for (const auto& each : cases) {
    EXPECT_THAT(error_of(plan_devices(workers(each.what), each.inventory, each.environment, kCpus)),
                HasSubstr(each.error));
  }
}

TEST(WorkerCountTest, OfMigSlicesIsOneUnlessEachWorkerGetsItsOwn) {
  const std::vector<std::string> environment{"CUDA_VISIBLE_DEVICES=MIG-1,MIG-2,MIG-3"};
  const auto inventory = machine(Vendor::Nvidia, 1);
  const auto plain = plan_devices(workers(CountedBy::Gpu), inventory, environment, kCpus);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->workers, 1);
  EXPECT_THAT(plain->notes, ElementsAre(HasSubstr("--virtual-local-rank")));
  const auto own =
      plan_devices(with_virtual(workers(CountedBy::Gpu)), inventory, environment, kCpus);
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(masks(*own), ElementsAre("CUDA_VISIBLE_DEVICES=MIG-1", "CUDA_VISIBLE_DEVICES=MIG-2",
                                       "CUDA_VISIBLE_DEVICES=MIG-3"));
  EXPECT_THAT(own->descriptions, ElementsAre("MIG-1", "MIG-2", "MIG-3"));
}

TEST(VirtualLocalRankTest, TakesTheEntriesOfTheListAsTorchrunDoes) {
  const DeviceInventory nothing;
  const struct {
    std::vector<std::string> environment;
    std::vector<std::string> masks;
  } cases[] = {
      {{}, {"0", "1"}},
      {{"CUDA_VISIBLE_DEVICES=4, 7 ,9"}, {"4", "7"}},
      {{"CUDA_VISIBLE_DEVICES=GPU-x,MIG-y"}, {"GPU-x", "MIG-y"}},
      {{"CUDA_VISIBLE_DEVICES=3,3"}, {"3", "3"}},
  };
  for (const auto& each : cases) {
    const auto plan = plan_devices(with_virtual(workers(2)), nothing, each.environment, kCpus);
    ASSERT_TRUE(plan.ok()) << plan.error().what();
    EXPECT_THAT(masks(*plan), ElementsAre("CUDA_VISIBLE_DEVICES=" + each.masks[0],
                                          "CUDA_VISIBLE_DEVICES=" + each.masks[1]));
    EXPECT_THAT(plan->descriptions, ElementsAre("GPU " + each.masks[0], "GPU " + each.masks[1]));
  }
}

TEST(VirtualLocalRankTest, BeyondTheListIsAnError) {
  EXPECT_THAT(
      error_of(plan_devices(with_virtual(workers(3)), {}, {"CUDA_VISIBLE_DEVICES=0,1"}, kCpus)),
      Eq("--virtual-local-rank: 3 workers need a GPU each, and CUDA_VISIBLE_DEVICES=0,1 "
         "leaves 2"));
  auto request = with_virtual(gpus("0,1"));
  request.workers = 3;
  EXPECT_THAT(error_of(plan_devices(request, machine(Vendor::Nvidia, 4), {}, kCpus)),
              HasSubstr("--gpu-ids, --include or --exclude leaves 2"));
  EXPECT_THAT(
      error_of(plan_devices(with_virtual(workers(3)), machine(Vendor::Intel, 2), {}, kCpus)),
      HasSubstr("3 workers need a GPU each"));
  EXPECT_THAT(error_of(plan_devices(with_virtual(workers(2)), machine(Vendor::Amd, 4),
                                    {"ROCR_VISIBLE_DEVICES=3"}, kCpus)),
              HasSubstr("ROCR_VISIBLE_DEVICES=3 leaves 1"));
}

TEST(VirtualLocalRankTest, WritesTheVendorsOwnMask) {
  const auto amd = plan_devices(with_virtual(workers(2)), machine(Vendor::Amd, 4), {}, kCpus);
  ASSERT_TRUE(amd.ok());
  EXPECT_THAT(masks(*amd), ElementsAre("HIP_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=0",
                                       "HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=1"));
  const auto layered = plan_devices(with_virtual(workers(2)), machine(Vendor::Amd, 4),
                                    {"ROCR_VISIBLE_DEVICES=2,3"}, kCpus);
  ASSERT_TRUE(layered.ok());
  EXPECT_THAT(masks(*layered), ElementsAre("HIP_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=0",
                                           "HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(layered->descriptions, ElementsAre("GPU 2 (0000:12:00.0)", "GPU 3 (0000:13:00.0)"));
  const auto intel = plan_devices(with_virtual(workers(2)), machine(Vendor::Intel, 4),
                                  {"ZE_AFFINITY_MASK=1,3"}, kCpus);
  ASSERT_TRUE(intel.ok());
  EXPECT_THAT(masks(*intel), ElementsAre("ZE_AFFINITY_MASK=1", "ZE_AFFINITY_MASK=3"));
  EXPECT_THAT(intel->descriptions, ElementsAre("XPU 1 (0000:11:00.0)", "XPU 3 (0000:13:00.0)"));
}

TEST(VirtualLocalRankTest, PrefersNvidiaWhereItsDriverIs) {
  auto inventory = machine(Vendor::Intel, 1);
  inventory.nvidia_driver = true;
  const auto plan = plan_devices(with_virtual(workers(1)), inventory, {}, kCpus);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(masks(*plan), ElementsAre("CUDA_VISIBLE_DEVICES=0"));
}

TEST(GpusTest, GiveTheWorkerCountAndTheMask) {
  const auto inventory = machine(Vendor::Nvidia, 8);
  const auto plan = plan_devices(gpus("1,3,5"), inventory, {}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_EQ(plan->workers, 3);
  EXPECT_THAT(masks(*plan),
              ::testing::Each("CUDA_VISIBLE_DEVICES=1,3,5 CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(plan->descriptions,
              ElementsAre("GPU 1 (0000:11:00.0) of 1,3,5", "GPU 3 (0000:13:00.0) of 1,3,5",
                          "GPU 5 (0000:15:00.0) of 1,3,5"));
  const auto own = plan_devices(with_virtual(gpus("1,3,5")), inventory, {}, kCpus);
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(masks(*own), ElementsAre("CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID",
                                       "CUDA_VISIBLE_DEVICES=3 CUDA_DEVICE_ORDER=PCI_BUS_ID",
                                       "CUDA_VISIBLE_DEVICES=5 CUDA_DEVICE_ORDER=PCI_BUS_ID"));
}

TEST(GpusTest, KeepTheOrderGivenAndTheUsersDeviceOrder) {
  const auto plan = plan_devices(gpus("5,0-1"), machine(Vendor::Nvidia, 8),
                                 {"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, kCpus);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(masks(*plan), ::testing::Each("CUDA_VISIBLE_DEVICES=5,0,1"));
}

TEST(GpusTest, ANumberOfWorkersBesideThemWins) {
  auto request = gpus("0,1,2,3");
  request.workers = 1;
  const auto one = plan_devices(request, machine(Vendor::Nvidia, 8), {}, kCpus);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->workers, 1);
  EXPECT_THAT(one->environment[0], ::testing::Contains("CUDA_VISIBLE_DEVICES=0,1,2,3"));
  for (const auto what : {CountedBy::Gpu, CountedBy::Auto}) {
    request.workers = what;
    const auto plan = plan_devices(request, machine(Vendor::Nvidia, 8), {}, kCpus);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->workers, 4);
  }
}

TEST(GpusTest, CountWhatTheInheritedMaskLeaves) {
  const auto inventory = machine(Vendor::Nvidia, 8);
  const auto plan = plan_devices(gpus("3,0"), inventory, {"CUDA_VISIBLE_DEVICES=4,5,6,7"}, kCpus);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(masks(*plan), ::testing::Each("CUDA_VISIBLE_DEVICES=7,4"));
  EXPECT_THAT(plan->descriptions,
              ElementsAre("GPU 7 (0000:17:00.0) of 7,4", "GPU 4 (0000:14:00.0) of 7,4"));
  const auto uuids =
      plan_devices(gpus("1"), inventory, {"CUDA_VISIBLE_DEVICES=GPU-aa,GPU-cc"}, kCpus);
  ASSERT_TRUE(uuids.ok()) << uuids.error().what();
  EXPECT_THAT(masks(*uuids), ElementsAre("CUDA_VISIBLE_DEVICES=GPU-cc"));
  EXPECT_THAT(error_of(plan_devices(gpus("4"), inventory, {"CUDA_VISIBLE_DEVICES=4,5"}, kCpus)),
              Eq("--gpu-ids '4': there is no GPU 4: visible are 0 to 1"));
  EXPECT_THAT(error_of(plan_devices(gpus("0"), inventory, {"CUDA_VISIBLE_DEVICES=9"}, kCpus)),
              Eq("--gpu-ids '0': CUDA_VISIBLE_DEVICES=9 leaves none of 8 NVIDIA GPUs"));
}

TEST(GpusTest, MayBeMigSlices) {
  const auto plan = plan_devices(gpus("1,MIG-c"), machine(Vendor::Nvidia, 1),
                                 {"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b,MIG-c"}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_EQ(plan->workers, 1);
  EXPECT_THAT(masks(*plan), ElementsAre("CUDA_VISIBLE_DEVICES=MIG-b,MIG-c"));
}

TEST(GpusTest, MayBeNamedByUuid) {
  const auto plan = plan_devices(gpus("GPU-bb,3"), machine(Vendor::Nvidia, 8), {}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_THAT(plan->devices, ElementsAre(::testing::Field(&Device::number, 1),
                                         ::testing::Field(&Device::number, 3)));
}

TEST(GpusTest, OfAmdCountWhatRocrLeaves) {
  const auto plan =
      plan_devices(gpus("1"), machine(Vendor::Amd, 4), {"ROCR_VISIBLE_DEVICES=2,3"}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_THAT(masks(*plan), ElementsAre("HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(plan->descriptions, ElementsAre("GPU 3 (0000:13:00.0)"));
  EXPECT_THAT(error_of(plan_devices(gpus("3"), machine(Vendor::Amd, 4),
                                    {"ROCR_VISIBLE_DEVICES=2,3"}, kCpus)),
              Eq("--gpu-ids '3': there is no GPU 3: visible are 0 to 1"));
}

TEST(GpusTest, OfIntelUseItsMask) {
  const auto plan = plan_devices(gpus("0,2"), machine(Vendor::Intel, 3), {}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_EQ(plan->workers, 2);
  EXPECT_THAT(masks(*plan), ::testing::Each("ZE_AFFINITY_MASK=0,2"));
}

TEST(GpusTest, AreTakenOnTrustWhereNoDriverListsThem) {
  const DeviceInventory nothing;
  const auto plan = plan_devices(gpus("1,3"), nothing, {}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_EQ(plan->workers, 2);
  EXPECT_THAT(masks(*plan),
              ::testing::Each("CUDA_VISIBLE_DEVICES=1,3 CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(plan->notes, ElementsAre(HasSubstr("--gpu-ids '1,3' is not checked")));
  // But never beyond the mask.
  EXPECT_THAT(error_of(plan_devices(gpus("1,3"), nothing, {"CUDA_VISIBLE_DEVICES=0,1"}, kCpus)),
              HasSubstr("there is no GPU 3: visible are 0 to 1"));
}

TEST(GpusTest, RefuseWhatIsNotThereOrMakesNoSense) {
  const auto inventory = machine(Vendor::Nvidia, 4);
  const struct {
    const char* list;
    const char* error;
  } cases[] = {
      {"7", "--gpu-ids '7': there is no GPU 7: visible are 0 to 3"},
      {"GPU-zz", "--gpu-ids 'GPU-zz': there is no GPU GPU-zz"},
      {"1,1", "--gpu-ids '1,1': GPU 1 is listed twice"},
      {"0-2,1", "--gpu-ids '0-2,1': GPU 1 is listed twice"},
      {"1,GPU-bb", "GPU GPU-bb is listed twice"},
      {"1,,2", "expected numbers, ranges or UUIDs"},
      {"1,", "expected numbers, ranges or UUIDs"},
      {"x", "expected numbers, ranges or UUIDs"},
      {"3-1", "expected numbers, ranges or UUIDs"},
      {"-1", "expected numbers, ranges or UUIDs"},
  };
  for (const auto& each : cases) {
    EXPECT_THAT(error_of(plan_devices(gpus(each.list), inventory, {}, kCpus)),
                HasSubstr(each.error));
  }
  EXPECT_THAT(error_of(plan_devices(gpus("1"), machine(Vendor::Nvidia, 1), {}, kCpus)),
              HasSubstr("only GPU 0 is visible"));
}

DeviceRequest filter(const std::string& include, const std::string& exclude) {
  DeviceRequest request;
  request.include = include;
  request.exclude = exclude;
  request.host_names = {"node7.cluster"};
  return request;
}

TEST(IncludeTest, SpeaksDeepSpeed) {
  const struct {
    const char* include;
    const char* exclude;
    std::vector<int> devices;
  } cases[] = {
      {"localhost:1,3", "", {1, 3}},  {"localhost", "", {0, 1, 2, 3}},
      {"node7:2", "", {2}},           {"NODE7.cluster:2", "", {2}},
      {"127.0.0.1:0", "", {0}},       {"node1:0@node7:3,1@node9", "", {3, 1}},
      {"", "localhost:0", {1, 2, 3}}, {"", "node7:0,1@node1", {2, 3}},
      {"", "node1:0", {0, 1, 2, 3}},  {"", "node1", {0, 1, 2, 3}},
  };
  for (const auto& each : cases) {
    const auto plan =
        plan_devices(filter(each.include, each.exclude), machine(Vendor::Nvidia, 4), {}, kCpus);
    ASSERT_TRUE(plan.ok()) << each.include << each.exclude << ": " << plan.error().what();
    std::vector<int> numbers;
    for (const auto& device : plan->devices)
      numbers.push_back(device.number);
    EXPECT_EQ(numbers, each.devices) << each.include << each.exclude;
    EXPECT_EQ(plan->workers, static_cast<int>(each.devices.size()));
  }
}

TEST(IncludeTest, CountsWhatTheMaskLeaves) {
  const auto plan = plan_devices(filter("", "localhost:0"), machine(Vendor::Nvidia, 4),
                                 {"CUDA_VISIBLE_DEVICES=2,3"}, kCpus);
  ASSERT_TRUE(plan.ok()) << plan.error().what();
  EXPECT_THAT(masks(*plan), ElementsAre("CUDA_VISIBLE_DEVICES=3"));
}

TEST(IncludeTest, SaysWhatIsWrong) {
  const auto inventory = machine(Vendor::Nvidia, 4);
  const struct {
    const char* include;
    const char* exclude;
    const char* error;
  } cases[] = {
      {"localhost:1", "localhost:2", "--gpu-ids, --include and --exclude all choose devices"},
      {"node1:0", "",
       "--include 'node1:0': does not name this machine (node7.cluster); localhost "
       "always does"},
      {"node7.other:0", "", "does not name this machine"},
      {"1,3", "", "expected HOST:DEVICES, as in localhost:1,3"},
      {"", ":1", "expected HOST:DEVICES"},
      {"localhost:", "", "expected numbers, ranges or UUIDs"},
      {"localhost:x", "", "expected numbers, ranges or UUIDs"},
      {"localhost:0@node7:1", "", "names this machine twice"},
      {"localhost:9", "", "there is no GPU 9"},
      {"", "localhost", "leaves out this machine altogether"},
      {"", "localhost:0-3", "no GPU is left"},
      {"", "localhost:9", "there is no GPU 9"},
  };
  for (const auto& each : cases) {
    EXPECT_THAT(error_of(plan_devices(filter(each.include, each.exclude), inventory, {}, kCpus)),
                HasSubstr(each.error))
        << each.include << " " << each.exclude;
  }
  EXPECT_THAT(error_of(plan_devices(filter("", "localhost:0"), {}, {}, kCpus)),
              HasSubstr("no GPU found"));
  const auto masked =
      plan_devices(filter("", "localhost:0"), {}, {"CUDA_VISIBLE_DEVICES=0,1"}, kCpus);
  ASSERT_TRUE(masked.ok()) << masked.error().what();
  EXPECT_THAT(masks(*masked), ElementsAre("CUDA_VISIBLE_DEVICES=1"));
}

TEST(InventoryNeedTest, IsNothingForAPlainJob) {
  EXPECT_EQ(inventory_need(workers(std::nullopt), false), InventoryNeed::Nothing);
  EXPECT_EQ(inventory_need(workers(8), false), InventoryNeed::Nothing);
  EXPECT_EQ(inventory_need(workers(CountedBy::Cpu), false), InventoryNeed::Nothing);
  EXPECT_EQ(inventory_need(workers(CountedBy::Cpu), true), InventoryNeed::Nothing);
  EXPECT_EQ(inventory_need(with_virtual(workers(8)), false), InventoryNeed::Presence);
  EXPECT_EQ(inventory_need(workers(8), true), InventoryNeed::Everything);
  for (const auto what : {CountedBy::Auto, CountedBy::Gpu, CountedBy::Xpu}) {
    EXPECT_EQ(inventory_need(workers(what), false), InventoryNeed::Everything);
  }
  EXPECT_EQ(inventory_need(gpus("1"), false), InventoryNeed::Everything);
}

}  // namespace
}  // namespace drun::launcher
