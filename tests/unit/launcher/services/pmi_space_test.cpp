#include "launcher/services/pmi_space.hpp"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

rendezvous::Assignment round_at(int round, const std::string& address, std::uint16_t port) {
  rendezvous::Assignment assignment;
  assignment.round = round;
  assignment.master_address = address;
  assignment.master_port = port;
  return assignment;
}

TEST(PmiSpaceTest, NamesTheJobItsStoreAndTheRound) {
  EXPECT_EQ(pmi_space("train", round_at(3, "10.0.0.1", 29'500)), "drun_train_10_0_0_1_29500_3");
}

TEST(PmiSpaceTest, IsAnotherOneInEachJobAndRound) {
  const std::set<std::string> spaces = {
      pmi_space("a", round_at(1, "n0", 1)), pmi_space("b", round_at(1, "n0", 1)),
      pmi_space("a", round_at(2, "n0", 1)), pmi_space("a", round_at(1, "n1", 1)),
      pmi_space("a", round_at(1, "n0", 2))};
  EXPECT_EQ(spaces.size(), 5U);
}

// A program puts it into file names and lines of PMI.
TEST(PmiSpaceTest, HasOnlyLettersDigitsAndUnderscores) {
  EXPECT_THAT(pmi_space("my job=\n/../\xc3\xa4;", round_at(1, "fe80::1%eth0", 1)),
              MatchesRegex("[A-Za-z0-9_]+"));
}

// The end says which round it is.
TEST(PmiSpaceTest, OfALongNameTheEndStays) {
  const auto space = pmi_space(std::string(1'000, 'x'), round_at(17, "node0", 29'500));
  EXPECT_EQ(space.size(), 128U);
  EXPECT_THAT(space, EndsWith("x_node0_29500_17"));
}

}  // namespace
}  // namespace drun::launcher
