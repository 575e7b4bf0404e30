#include "base/counted.hpp"

#include <cstddef>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(CountedTest, OneOnlyIsSingular) {
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(std::size_t{2}, "node"), "2 nodes");
  EXPECT_EQ(counted(-1, "node"), "-1 nodes");
}

TEST(CountedTest, AWordMayHaveAPluralOfItsOwn) {
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(2, "process", "processes"), "2 processes");
}

}  // namespace
}  // namespace drun
