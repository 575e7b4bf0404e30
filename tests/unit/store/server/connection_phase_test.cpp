#include "store/server/connection_phase.hpp"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

namespace drun::store {
namespace {

using enum ConnectionPhase;

TEST(ConnectionPhaseTest, EachPhaseLeadsWhereItMayAndNowhereElse) {
  constexpr std::array kPhases{Reading, Paused, Closing, Lingering, Dead};
  constexpr bool kMay[5][5] = {
      // to Reading, Paused, Closing, Lingering, Dead
      {false, true, true, false, true},     // from Reading
      {true, false, false, false, true},    // from Paused
      {false, false, false, true, true},    // from Closing
      {false, false, false, false, true},   // from Lingering
      {false, false, false, false, false},  // from Dead
  };
  for (std::size_t from = 0; from < kPhases.size(); ++from)
    for (std::size_t to = 0; to < kPhases.size(); ++to)
      EXPECT_EQ(may_follow(kPhases[from], kPhases[to]), kMay[from][to]) << from << " to " << to;
}

TEST(ConnectionPhaseTest, InputIsAwaitedForRequestsAndForTheEnd) {
  EXPECT_TRUE(awaits_input(Reading));
  EXPECT_FALSE(awaits_input(Paused));
  EXPECT_FALSE(awaits_input(Closing));
  EXPECT_TRUE(awaits_input(Lingering));
  EXPECT_FALSE(awaits_input(Dead));
}

}  // namespace
}  // namespace drun::store
