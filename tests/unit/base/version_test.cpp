#include "drun/version.hpp"

#include <string>

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(VersionTest, TheTextIsTheNumbers) {
  EXPECT_EQ(DRUN_VERSION_STRING, std::to_string(DRUN_VERSION_MAJOR) + "." +
                                     std::to_string(DRUN_VERSION_MINOR) + "." +
                                     std::to_string(DRUN_VERSION_PATCH));
  static_assert(DRUN_VERSION >= 100 && DRUN_VERSION < 1'000'000);
}

}  // namespace
}  // namespace drun
