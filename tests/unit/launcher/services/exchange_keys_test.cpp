#include "launcher/services/exchange_keys.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;

TEST(ExchangeKeysTest, EachNodeSaysOneTextAndHearsThoseOfAll) {
  const ExchangeKeys keys{"pmi", 1, 3};
  EXPECT_EQ(keys.own(4), "drun/pmi/4/1");
  EXPECT_THAT(keys.all(4), ElementsAre("drun/pmi/4/0", "drun/pmi/4/1", "drun/pmi/4/2"));
}

TEST(ExchangeKeysTest, ANodeThatIsAloneHearsItself) {
  const ExchangeKeys keys{"peers", 0, 1};
  EXPECT_THAT(keys.all(0), ElementsAre(keys.own(0)));
}

// A node that is still in the exchange before reads the keys of that one: only its own may go, and
// only once all have come to the next.
TEST(ExchangeKeysTest, OnlyItsOwnTextOfTheExchangeBeforeIsDoneWith) {
  const ExchangeKeys keys{"pmi", 1, 3};
  EXPECT_EQ(keys.done_with(0), std::nullopt);
  for (int number = 1; number < 4; ++number) {
    EXPECT_EQ(keys.done_with(number), keys.own(number - 1));
    const auto read = keys.all(number);
    EXPECT_EQ(std::count(read.begin(), read.end(), *keys.done_with(number)), 0);
  }
}

TEST(ExchangeKeysTest, ExchangesOfAnotherPurposeHaveOtherKeys) {
  EXPECT_NE((ExchangeKeys{"pmi", 0, 2}.own(0)), (ExchangeKeys{"peers", 0, 2}.own(0)));
}

}  // namespace
}  // namespace drun::launcher
