// What the nodes of a round say of their ports.
#include "launcher/services/peer_ports.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;

using Places = PeerDirectory::Places;

Places places(const std::vector<std::string>& texts, int world_size) {
  auto found = places_of(texts, world_size);
  return found ? *found : Places{found.error().what()};
}

TEST(PlacesTest, PlacesAreInTheOrderOfTheRanks) {
  EXPECT_THAT(places({"a:1,a:2", "[::1]:3"}, 3), ElementsAre("a:1", "a:2", "[::1]:3"));
}

TEST(PlacesTest, WhatIsNoPlaceOrNotOneForEachRankIsAnError) {
  EXPECT_THAT(places({"a:1", "b"}, 2), ElementsAre("no place of a rank"));
  EXPECT_THAT(places({"a:1", ""}, 2), ElementsAre("no place of a rank"));
  EXPECT_THAT(places({"a:1", "b:65536"}, 2), ElementsAre("no place of a rank"));
  EXPECT_THAT(places({"a:1", "b:2"}, 3), ElementsAre("not one place for each rank"));
  EXPECT_THAT(places({"a:1,a:2", "b:2"}, 2), ElementsAre("not one place for each rank"));
}

TEST(PlacesTest, NoNodesHaveNoPlaces) {
  EXPECT_THAT(places({}, 0), ElementsAre());
  EXPECT_THAT(places({}, 1), ElementsAre("not one place for each rank"));
}

}  // namespace
}  // namespace drun::launcher
