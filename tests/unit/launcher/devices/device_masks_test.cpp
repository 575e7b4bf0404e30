#include "launcher/devices/device_masks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Device> devices(Vendor vendor, const std::vector<std::string>& uuids) {
  std::vector<Device> result;
  for (const auto& uuid : uuids) {
    const auto number = static_cast<int>(result.size());
    result.push_back({vendor, number, uuid, "0000:0" + std::to_string(number + 1) + ":00.0",
                      number / 2, std::to_string(number)});
  }
  return result;
}

DeviceInventory four_of_each() {
  DeviceInventory inventory;
  inventory.nvidia = devices(Vendor::Nvidia, {"GPU-aa11", "GPU-aa22", "GPU-bb33", "GPU-cc44"});
  inventory.amd = devices(Vendor::Amd, {"GPU-0a", "GPU-0b", "GPU-0c", "GPU-0d"});
  inventory.intel = devices(Vendor::Intel, {"", "", "", ""});
  return inventory;
}

std::vector<int> numbers(const std::vector<Device>& list) {
  std::vector<int> result;
  for (const auto& device : list)
    result.push_back(device.number);
  return result;
}

std::vector<std::string> entries(const std::vector<Device>& list) {
  std::vector<std::string> result;
  for (const auto& device : list)
    result.push_back(device.entry);
  return result;
}

TEST(MaskTest, IsReadAsCudaDoes) {
  const struct {
    const char* mask;
    std::vector<int> visible;
  } cases[] = {
      {"0,1,2,3", {0, 1, 2, 3}},
      {"3,1", {3, 1}},
      {" 2 , 0 ", {2, 0}},
      {"1gpu2,2ampere", {1, 2}},
      {"+1", {1}},
      {"0,-1,2", {0}},
      {"-1", {}},
      {"", {}},
      {"none", {}},
      {"0,,1", {0}},
      {"0,1,4,2", {0, 1}},
      {"4", {}},
      {"0,1,0", {}},
      {"0,9,9", {}},
      {"0,-1,0", {0}},
      {"0,99999999999999999999", {0}},
      {"GPU-bb33", {2}},
      {"GPU-cc,GPU-aa1", {3, 0}},
      {"GPU-aa", {}},  // two begin so
      {"GPU-cc,GPU-aa", {3}},
      {"GPU-cc,GPU-cc44", {}},  // one device, twice
      {"GPU-cc,GPU-cc", {}},
      {"GPU-cc,GPU-zz,GPU-zz", {}},
      {"GPU-cc,1", {3}},
      {"GPU-zz", {}},
      {"1,GPU-cc", {1}},
  };
  const DeviceInventory inventory = four_of_each();
  for (const auto& each : cases) {
    const std::vector<std::string> environment{std::string("CUDA_VISIBLE_DEVICES=") + each.mask};
    EXPECT_EQ(numbers(visible_devices(Vendor::Nvidia, inventory, environment)), each.visible)
        << each.mask;
  }
}

TEST(MaskTest, ThatIsNotSetHidesNothing) {
  const DeviceInventory inventory = four_of_each();
  for (const Vendor vendor : {Vendor::Nvidia, Vendor::Amd, Vendor::Intel}) {
    EXPECT_THAT(numbers(visible_devices(vendor, inventory, {})), ElementsAre(0, 1, 2, 3));
  }
}

TEST(MaskTest, KeepsWhatTheUserWrote) {
  const DeviceInventory inventory = four_of_each();
  EXPECT_THAT(
      entries(visible_devices(Vendor::Nvidia, inventory, {"CUDA_VISIBLE_DEVICES=GPU-cc,GPU-bb33"})),
      ElementsAre("GPU-cc", "GPU-bb33"));
  EXPECT_THAT(entries(visible_devices(Vendor::Nvidia, inventory, {"CUDA_VISIBLE_DEVICES=1gpu,3"})),
              ElementsAre("1", "3"));
}

TEST(MaskTest, ListsMigSlices) {
  DeviceInventory inventory = four_of_each();
  inventory.mig.push_back({Vendor::Nvidia, -1, "MIG-2", "0000:02:00.0", 1, "MIG-2"});
  const std::vector<std::string> environment{"CUDA_VISIBLE_DEVICES=MIG-1,MIG-2"};
  EXPECT_THAT(mig_entries(environment), ElementsAre("MIG-1", "MIG-2"));
  const auto slices = visible_devices(Vendor::Nvidia, inventory, environment);
  EXPECT_THAT(entries(slices), ElementsAre("MIG-1", "MIG-2"));
  EXPECT_EQ(slices[0].pci_address, "");
  EXPECT_EQ(slices[1].numa_node, 1);

  EXPECT_THAT(mig_entries({"CUDA_VISIBLE_DEVICES=MIG-1,GPU-2,MIG-3"}), ElementsAre("MIG-1"));
  EXPECT_THAT(mig_entries({"CUDA_VISIBLE_DEVICES=MIG-1,MIG-1"}), IsEmpty());
  EXPECT_THAT(mig_entries({"CUDA_VISIBLE_DEVICES=0,MIG-1"}), IsEmpty());
  EXPECT_THAT(mig_entries({}), IsEmpty());
}

TEST(MaskTest, AmdsTwoLayersCountOneAfterTheOther) {
  const struct {
    std::vector<std::string> environment;
    std::vector<int> visible;
    std::vector<std::string> entries;
  } cases[] = {
      {{"ROCR_VISIBLE_DEVICES=1,2,3"}, {1, 2, 3}, {"0", "1", "2"}},
      {{"ROCR_VISIBLE_DEVICES=1,2,3", "HIP_VISIBLE_DEVICES=0"}, {1}, {"0"}},
      {{"ROCR_VISIBLE_DEVICES=1,2,3", "HIP_VISIBLE_DEVICES=2,0"}, {3, 1}, {"2", "0"}},
      {{"ROCR_VISIBLE_DEVICES=GPU-0d,0"}, {3, 0}, {"0", "1"}},
      {{"HIP_VISIBLE_DEVICES=2,3"}, {2, 3}, {"2", "3"}},
      {{"CUDA_VISIBLE_DEVICES=1"}, {1}, {"1"}},
      {{"CUDA_VISIBLE_DEVICES=0,1,2,3", "HIP_VISIBLE_DEVICES=0"}, {0}, {"0"}},
      {{"ROCR_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=1"}, {}, {}},
  };
  const DeviceInventory inventory = four_of_each();
  for (const auto& each : cases) {
    const auto visible = visible_devices(Vendor::Amd, inventory, each.environment);
    EXPECT_EQ(numbers(visible), each.visible) << ::testing::PrintToString(each.environment);
    EXPECT_EQ(entries(visible), each.entries) << ::testing::PrintToString(each.environment);
  }
}

// Two cards with two tiles each.
DeviceInventory two_cards() {
  DeviceInventory inventory;
  for (int i = 0; i < 4; ++i) {
    inventory.intel.push_back(
        {Vendor::Intel, i, "", i < 2 ? "0000:3a:00.0" : "0000:9a:00.0", i / 2, std::to_string(i)});
  }
  return inventory;
}

TEST(MaskTest, IntelsTilesAreDevicesUnlessTheCardIs) {
  const std::string composite = "ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE";
  const struct {
    std::vector<std::string> environment;
    std::vector<int> visible;
    std::vector<std::string> entries;
  } cases[] = {
      {{}, {0, 1, 2, 3}, {"0", "1", "2", "3"}},
      {{"ZE_AFFINITY_MASK=1,3"}, {1, 3}, {"1", "3"}},
      {{"ZE_AFFINITY_MASK="}, {0, 1, 2, 3}, {"0", "1", "2", "3"}},
      {{"ZE_AFFINITY_MASK=1,7"}, {1}, {"1"}},
      {{composite}, {0, 1}, {"0", "1"}},
      {{composite, "ZE_AFFINITY_MASK=1"}, {1}, {"1"}},
      {{composite, "ZE_AFFINITY_MASK=0.0,0.1,1.1"}, {0, 1}, {"0.0,0.1", "1.1"}},
      {{"ZE_FLAT_DEVICE_HIERARCHY=FLAT", "ZE_AFFINITY_MASK=2"}, {2}, {"2"}},
  };
  const DeviceInventory inventory = two_cards();
  for (const auto& each : cases) {
    const auto visible = visible_devices(Vendor::Intel, inventory, each.environment);
    EXPECT_EQ(numbers(visible), each.visible) << ::testing::PrintToString(each.environment);
    EXPECT_EQ(entries(visible), each.entries) << ::testing::PrintToString(each.environment);
  }
}

}  // namespace
}  // namespace drun::launcher
