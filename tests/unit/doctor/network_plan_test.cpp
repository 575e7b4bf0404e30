#include "doctor/network_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace drun::doctor {
namespace {

TEST(NetworkPlanTest, UpToSixtyFourTryAllOthers) {
  for (int nodes = 1; nodes <= kAllPairs; ++nodes)
    for (int node = 0; node < nodes; ++node) {
      const auto peers = peers_of(node, nodes);
      EXPECT_EQ(peers.size(), static_cast<std::size_t>(nodes - 1));
      EXPECT_FALSE(std::binary_search(peers.begin(), peers.end(), node));
    }
}

// However many there are: few ways each, both ways tried, all connected, the neighbour among them.
TEST(NetworkPlanTest, MoreAreConnectedByFewWays) {
  for (const int nodes : {65, 100, 128, 1000, 1025}) {
    std::vector<bool> reached(static_cast<std::size_t>(nodes));
    std::vector<int> open{0};
    reached[0] = true;
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      const auto peers = peers_of(node, nodes);
      EXPECT_LE(peers.size(), 13U);
      EXPECT_TRUE(std::binary_search(peers.begin(), peers.end(), neighbour_of(node, nodes)));
      for (const int peer : peers) {
        ASSERT_TRUE(peer >= 0 && peer < nodes && peer != node);
        const auto back = peers_of(peer, nodes);
        EXPECT_TRUE(std::binary_search(back.begin(), back.end(), node));
        if (!reached[static_cast<std::size_t>(peer)]) open.push_back(peer);
        reached[static_cast<std::size_t>(peer)] = true;
      }
    }
    EXPECT_TRUE(std::all_of(reached.begin(), reached.end(), [](bool each) { return each; }));
  }
}

TEST(NetworkPlanTest, OneAloneHasNoNeighbour) {
  EXPECT_EQ(neighbour_of(0, 1), -1);
  EXPECT_EQ(neighbour_of(1, 2), 0);
}

}  // namespace
}  // namespace drun::doctor
