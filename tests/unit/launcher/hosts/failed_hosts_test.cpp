#include "launcher/hosts/failed_hosts.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string refused(const std::string& host) {
  return "it refuses the connection (ssh: connect to host " + host + " port 22: refused)";
}

TEST(FailedHostsTest, ThoseWithTheSameReasonShareALine) {
  FailedHosts failed;
  EXPECT_FALSE(failed.any());
  for (int host = 10; host >= 0; --host)
    failed.add("gpu" + std::to_string(host), refused("gpu" + std::to_string(host)));
  failed.add("login", "ssh may not log in");
  EXPECT_TRUE(failed.any());
  EXPECT_THAT(failed.take(8),
              ElementsAre("gpu[0-10]: " + refused("{host}"), "login: ssh may not log in"));
  EXPECT_FALSE(failed.any());
  EXPECT_THAT(failed.take(8), IsEmpty());
}

TEST(FailedHostsTest, OneHostKeepsItsOwnWords) {
  FailedHosts failed;
  failed.add("gpu1", refused("gpu1"));
  EXPECT_THAT(failed.take(8), ElementsAre("gpu1: " + refused("gpu1")));
}

// A name is part of another, or of a word.
TEST(FailedHostsTest, OnlyWhatNamesTheHostMakesNoDifference) {
  FailedHosts failed;
  failed.add("gpu1", "asked gpu12, not gpu1");
  failed.add("gpu2", "asked gpu12, not gpu2");
  failed.add("e", "exit code 9");
  failed.add("f", "exit code 9");
  EXPECT_THAT(failed.take(8),
              ElementsAre("gpu[1-2]: asked gpu12, not {host}", "e, f: exit code 9"));
}

TEST(FailedHostsTest, OfVeryManyHostsItStaysALine) {
  FailedHosts failed;
  for (int host = 0; host < 10'000; host += 2)
    failed.add("n" + std::to_string(host), "no answer within 60 s");
  const auto lines = failed.take(4);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "n[0,2,4,6,...]: no answer within 60 s");
}

}  // namespace
}  // namespace drun::launcher::hosts
