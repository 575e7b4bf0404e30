#include "launcher/leaving/guardian_farewell.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

std::string told(const process::Farewell& farewell) {
  std::string text = farewell.address + "=" + farewell.bytes;
  for (const auto& other : farewell.others)
    text += " " + other.address + "=" + other.bytes;
  return text;
}

TEST(GuardianFarewellTest, TheStoreComesFirstThenWhoMayHaveTakenItsPlace) {
  EXPECT_TRUE(guardian_farewell({}).empty());
  EXPECT_EQ(told(guardian_farewell({{{"store", "bye"}}, {}})), "store=bye");
  EXPECT_EQ(told(guardian_farewell({{{"store", "bye"}}, {{"one", "1"}, {"two", "2"}}})),
            "store=bye one=1 two=2");
  EXPECT_EQ(told(guardian_farewell({{}, {{"one", "1"}}})), "= one=1");
}

}  // namespace
}  // namespace drun::launcher
