#include "base/fnv1a.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

// What others compute.
TEST(Fnv1aTest, IsTheKnownFunction) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_NE(fnv1a("\xff"), fnv1a("\x7f"));
}

}  // namespace
}  // namespace drun
