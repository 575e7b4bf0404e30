#include "launcher/devices/device_inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file_tree.hpp"

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

DeviceInventory read(const test::FileTree& tree) {
  return read_device_inventory(tree.root(), NvidiaListing::Full, {});
}

TEST(DeviceInventoryTest, OfAMachineWithoutDevicesIsEmpty) {
  const test::FileTree tree;
  const auto inventory = read(tree);
  EXPECT_THAT(inventory.nvidia, IsEmpty());
  EXPECT_THAT(inventory.amd, IsEmpty());
  EXPECT_THAT(inventory.intel, IsEmpty());
  EXPECT_FALSE(inventory.nvidia_driver);
}

TEST(DeviceInventoryTest, ReadsNvidiasDriverFilesWhereNvmlIsMissing) {
  test::FileTree tree;
  tree.write("/proc/driver/nvidia/gpus/0000:8a:00.0/information",
             "Model: \t\t NVIDIA H100\nIRQ:   \t\t 5\nGPU UUID: \t GPU-22222222-3333\n"
             "Bus Location: \t 0000:8a:00.0\n");
  tree.write("/proc/driver/nvidia/gpus/0000:1b:00.0/information", "GPU UUID: \t GPU-????????\n");
  tree.write("/sys/bus/pci/devices/0000:8a:00.0/numa_node", "1\n");
  tree.write("/sys/bus/pci/devices/0000:1b:00.0/numa_node", "-1\n");
  const auto inventory = read(tree);
  EXPECT_TRUE(inventory.nvidia_driver);
  EXPECT_THAT(inventory.nvidia,
              ElementsAre(Device{Vendor::Nvidia, 0, "", "0000:1b:00.0", -1, "0"},
                          Device{Vendor::Nvidia, 1, "GPU-22222222-3333", "0000:8a:00.0", 1, "1"}));
  EXPECT_THAT(read_device_inventory(tree.root(), NvidiaListing::None, {}).nvidia, IsEmpty());
}

TEST(DeviceInventoryTest, SeesNvidiasDriverWithoutListingAnything) {
  test::FileTree tree;
  tree.write("/dev/nvidiactl", "");
  EXPECT_TRUE(read_device_inventory(tree.root(), NvidiaListing::None, {}).nvidia_driver);
}

void add_kfd_node(test::FileTree& tree, int node, const std::string& properties) {
  tree.write("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
             properties);
}

TEST(DeviceInventoryTest, ListsAmdsComputeNodesThatMayBeOpened) {
  test::FileTree tree;
  tree.write("/dev/kfd", "");
  add_kfd_node(tree, 0, "cpu_cores_count 64\nsimd_count 0\n");
  // bus 0xc1, device 0, function 0
  add_kfd_node(tree, 2,
               "simd_count 1216\nlocation_id 49408\ndomain 0\nunique_id 81985529216486895\n");
  add_kfd_node(tree, 10, "simd_count 1216\nlocation_id 8961\ndomain 2\nunique_id 0\n");
  add_kfd_node(tree, 11, "simd_count 1216\nlocation_id 8961\ndrm_render_minor 129\n");
  tree.write("/sys/class/kfd/kfd/topology/nodes/3/gpu_id", "7\n");  // no properties to be read
  tree.write("/sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n");
  EXPECT_THAT(read(tree).amd,
              ElementsAre(Device{Vendor::Amd, 0, "GPU-0123456789abcdef", "0000:c1:00.0", 1, "0"},
                          Device{Vendor::Amd, 1, "", "0002:23:00.1", -1, "1"}));
  tree.write("/dev/dri/renderD129", "");
  EXPECT_EQ(read(tree).amd.size(), 3U);
  tree.remove("/dev/kfd");
  EXPECT_THAT(read(tree).amd, IsEmpty());
}

void add_drm(test::FileTree& tree, const std::string& render, const std::string& pci,
             const std::string& vendor) {
  const std::string device = "/sys/devices/pci/" + pci;
  tree.write(device + "/vendor", vendor + "\n");
  tree.link("/sys/class/drm/" + render + "/device", device);
  tree.write("/dev/dri/" + render, "");
}

TEST(DeviceInventoryTest, ListsIntelsDiscreteCardsByTile) {
  test::FileTree tree;
  add_drm(tree, "renderD128", "0000:00:02.0", "0x8086");  // integrated
  add_drm(tree, "renderD129", "0000:9a:00.0", "0x8086");
  add_drm(tree, "renderD130", "0000:3a:00.0", "0x8086");
  add_drm(tree, "renderD131", "0000:4a:00.0", "0x10de");
  add_drm(tree, "renderD132", "0000:5a:00.0", "0x8086");  // of another container
  tree.remove("/dev/dri/renderD132");
  tree.write("/sys/class/drm/card0/nothing", "");
  tree.write("/sys/devices/pci/0000:9a:00.0/tile0/x", "");
  tree.write("/sys/devices/pci/0000:9a:00.0/tile1/x", "");
  tree.write("/sys/devices/pci/0000:3a:00.0/drm/card1/gt/gt0/x", "");
  tree.write("/sys/bus/pci/devices/0000:9a:00.0/numa_node", "1\n");
  tree.write("/sys/bus/pci/devices/0000:3a:00.0/numa_node", "0\n");
  EXPECT_THAT(read(tree).intel, ElementsAre(Device{Vendor::Intel, 0, "", "0000:3a:00.0", 0, "0"},
                                            Device{Vendor::Intel, 1, "", "0000:9a:00.0", 1, "1"},
                                            Device{Vendor::Intel, 2, "", "0000:9a:00.0", 1, "2"}));
}

TEST(DeviceInventoryTest, OfThisMachineCanBeRead) {
  const auto inventory = read_device_inventory("", NvidiaListing::Full, {});
  for (std::size_t i = 0; i < inventory.nvidia.size(); ++i) {
    EXPECT_EQ(inventory.nvidia[i].number, static_cast<int>(i));
  }
}

}  // namespace
}  // namespace drun::launcher
