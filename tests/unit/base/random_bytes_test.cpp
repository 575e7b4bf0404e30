#include "base/random_bytes.hpp"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace drun {
namespace {

constexpr int kTimes = 4;  // that all are alike happens once in 2 to the power of 96

TEST(RandomBytesTest, NoTwoSeedsAreAlike) {
  std::set<std::uint32_t> seeds;
  for (int i = 0; i < kTimes; ++i)
    seeds.insert(random_seed());
  EXPECT_GT(seeds.size(), 1U);
}

TEST(RandomBytesTest, ANameHasAsManyLettersAsAreAskedFor) {
  std::set<std::string> names;
  for (int i = 0; i < kTimes; ++i)
    names.insert(random_name(16));
  EXPECT_GT(names.size(), 1U);
  for (const auto& name : names) {
    EXPECT_EQ(name.size(), 16U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), name.npos) << name;
  }
  EXPECT_EQ(random_name(0), "");
}

// getrandom() may give less than was asked for.
TEST(RandomBytesTest, ManyBytesAreFilledToTheirEnd) {
  std::vector<std::byte> bytes(1 << 20);
  fill_with_random_bytes(bytes);
  const auto last = std::span(bytes).last(64);
  EXPECT_NE(std::vector<std::byte>(last.begin(), last.end()), std::vector<std::byte>(64));
}

}  // namespace
}  // namespace drun
