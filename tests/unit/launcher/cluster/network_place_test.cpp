// Where a node is in the network, from Slurm's variables or a file.
#include "launcher/cluster/network_place.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::launcher::cluster {
namespace {

TEST(NetworkPlaceTest, IsWhatSlurmSaysBeforeTheNode) {
  EXPECT_EQ(network_place("spine1.leaf4.node7", "switch.switch.node"), "spine1/leaf4");
  EXPECT_EQ(network_place("leaf4.node7", "switch.node"), "leaf4");
  EXPECT_EQ(network_place("block3.node7", "block.node"), "block3");
  EXPECT_EQ(network_place("leaf4.node7.cluster.example", "switch.node"), "leaf4") << "a long name";
  EXPECT_EQ(network_place("s[0-1].leaf4.node7", "switch.switch.node"), "s[0-1]/leaf4");
  // Slurm without a network of which it knows.
  EXPECT_EQ(network_place("node7", "node"), "");
  EXPECT_EQ(network_place("", ""), "");
  EXPECT_EQ(network_place("node7.cluster.example", "node"), "");
  EXPECT_EQ(network_place("leaf4.node7", ""), "") << "without the pattern nobody knows";
}

const std::string kTree =
    "# The tree of the cluster\n"
    "SwitchName=leaf1 Nodes=node[0-3]\n"
    "SwitchName=leaf2   Nodes=node[4-7],login   # two lists\n"
    "\n"
    "switchname=spine1 SWITCHES=leaf[1-2] LinkSpeed=100\r\n"
    "SwitchName=core Switches=spine1\n";

TEST(NetworkPlaceTest, IsFoundInAFile) {
  EXPECT_EQ(network_place_in(kTree, {"node3"}).value(), "core/spine1/leaf1");
  EXPECT_EQ(network_place_in(kTree, {"node4"}).value(), "core/spine1/leaf2");
  EXPECT_EQ(network_place_in(kTree, {"node7.example", "node7"}).value(), "core/spine1/leaf2");
  EXPECT_EQ(
      network_place_in("BlockName=b1 Nodes=n[1-4]\nBlockSizes=4,16\nBlockName=b2 Nodes=n5", {"n5"})
          .value(),
      "b2");
}

TEST(NetworkPlaceTest, WhatCannotBeReadIsNamed) {
  const auto error = [](const std::string& file, const std::string& node = "n") {
    const auto place = network_place_in(file, {node});
    return place ? "none: " + *place : place.error().what();
  };
  EXPECT_EQ(error(kTree, "node8"), "no switch has this node (node8)");
  EXPECT_EQ(error(""), "no switch has this node (n)");
  EXPECT_EQ(error("SwitchName=a Nodes=n\nNodes=m"),
            "line 2: it names no switch: expected SwitchName=NAME");
  EXPECT_EQ(error("SwitchName=a Node=n"),
            "line 1: 'node': expected SwitchName, BlockName, Nodes or Switches");
  EXPECT_EQ(error("n a b"), "line 1: 'n': expected SwitchName, BlockName, Nodes or Switches");
  EXPECT_EQ(error("SwitchName=a Nodes=n[").substr(0, 8), "line 1: ");
  EXPECT_EQ(error("SwitchName=a Nodes=n Switches=b\nSwitchName=b Switches=a"),
            "the switches above a go round in a circle");
}

TEST(NetworkPlaceTest, AFileWithoutSenseDoesNotFillTheMemory) {
  std::string file;
  for (int line = 0; line < 100; ++line)
    file += "SwitchName=a Nodes=m[1-100000]\n";
  const auto many = network_place_in(file, {"n"});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().what(), "line 10: more than 1000000 nodes and switches");
  const std::string name(1'000, 's');
  EXPECT_EQ(network_place_in("SwitchName=" + name + " Nodes=n", {"n"}).value(), name);
  const auto longer = network_place_in("SwitchName=s" + name + " Nodes=n", {"n"});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().what(),
            "the names of the switches above this node have more than 1000 characters");
}

}  // namespace
}  // namespace drun::launcher::cluster
