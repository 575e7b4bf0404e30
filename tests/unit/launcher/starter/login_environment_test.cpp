#include "launcher/starter/login_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(AddressReachedByTest, IsTheThirdWordOfWhatSshSays) {
  EXPECT_EQ(address_reached_by({"A=1", "SSH_CONNECTION=198.51.100.1 4000 10.9.8.7 22"}),
            "10.9.8.7");
  EXPECT_EQ(address_reached_by({"SSH_CONNECTION=fe80::1%eth0 4000 2001:db8::7 22"}), "2001:db8::7");
}

TEST(AddressReachedByTest, IsEmptyWithoutSshOrIfItSaysLess) {
  EXPECT_EQ(address_reached_by({}), "");
  EXPECT_EQ(address_reached_by({"SSH_CONNECTION="}), "");
  EXPECT_EQ(address_reached_by({"SSH_CONNECTION=198.51.100.1 4000"}), "");
  EXPECT_EQ(address_reached_by({"XSSH_CONNECTION=a 1 b 2"}), "");
}

TEST(MergedEnvironmentTest, HasAllOfBothAndWhatIsOrderedWins) {
  EXPECT_THAT(merged_environment({"LOGIN=there", "BOTH=login"}, {"ORDERED=yes", "BOTH=order"}),
              UnorderedElementsAre("LOGIN=there", "ORDERED=yes", "BOTH=order"));
}

TEST(MergedEnvironmentTest, ANameThatOnlyBeginsLikeAnotherIsAnother) {
  EXPECT_THAT(merged_environment({"PATHS=1", "PAT=2"}, {"PATH=3"}),
              UnorderedElementsAre("PATHS=1", "PAT=2", "PATH=3"));
}

TEST(MergedEnvironmentTest, AnEmptyValueIsOneToo) {
  EXPECT_THAT(merged_environment({"A=1"}, {"A="}), ElementsAre("A="));
  EXPECT_THAT(merged_environment({}, {}), IsEmpty());
}

}  // namespace
}  // namespace drun::launcher
