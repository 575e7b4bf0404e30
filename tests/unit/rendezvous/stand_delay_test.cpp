#include "rendezvous/stand_delay.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

Config config(int max_nodes, const std::string& ticket = "a") {
  Config config;
  config.max_nodes = max_nodes;
  config.ticket = ticket;
  return config;
}

TEST(StandDelayTest, TheHostOfTheStoreAndWhoIsAloneStandAtOnce) {
  EXPECT_EQ(stand_delay(config(4), true, 0, std::nullopt), Milliseconds(0));
  Config at_once = config(4);
  at_once.stands_at_once = true;
  EXPECT_EQ(stand_delay(at_once, false, 0, std::nullopt), Milliseconds(0));
}

TEST(StandDelayTest, TheNodesOfARoundStandInTheirOrder) {
  EXPECT_EQ(stand_delay(config(4), false, 4, 0), Milliseconds(0));
  EXPECT_EQ(stand_delay(config(4), false, 4, 1), Milliseconds(5));
  const auto others = stand_delay(config(4), false, 4, std::nullopt);
  EXPECT_EQ(stand_delay(config(4), false, 4, 1'000), others) << "no later than the others";
}

TEST(StandDelayTest, TheOthersSpreadOverATimeThatGrowsWithTheJob) {
  struct Case {
    int max_nodes;
    int nodes;
    int range;
  };
  for (const auto& [max_nodes, nodes, range] :
       {Case{2, 0, 8}, Case{25, 0, 100}, Case{1'000, 0, 100}, Case{1'000, 5'000, 200},
        Case{1'000, 1'000'000, 2'100}}) {
    SCOPED_TRACE(std::to_string(max_nodes) + ", " + std::to_string(nodes));
    std::set<Milliseconds> delays;
    for (int agent = 0; agent < 500; ++agent) {
      const Config own = config(max_nodes, "agent " + std::to_string(agent));
      const auto delay = stand_delay(own, false, nodes, std::nullopt);
      EXPECT_EQ(delay, stand_delay(own, false, nodes, std::nullopt)) << "the same in each run";
      delays.insert(delay);
    }
    EXPECT_GE(*delays.begin(), Milliseconds(10)) << "behind the host";
    EXPECT_LT(*delays.rbegin(), Milliseconds(10 + range));
    EXPECT_GT(delays.size(), static_cast<std::size_t>(std::min(range, 200)) / 2);
  }
}

}  // namespace
}  // namespace drun::rendezvous
