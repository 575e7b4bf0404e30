#include "base/environment_variable.hpp"

#include <gtest/gtest.h>

namespace drun {
namespace {

TEST(EnvironmentVariableTest, IsFoundByItsWholeName) {
  const std::vector<std::string> environment{"PATHS=/x", "PATH=/bin:/usr/bin", "EMPTY=", "A=b=c",
                                             "NONE"};
  EXPECT_EQ(environment_variable(environment, "PATH"), "/bin:/usr/bin");
  EXPECT_EQ(environment_variable(environment, "EMPTY"), "");
  EXPECT_EQ(environment_variable(environment, "A"), "b=c");
  for (const char* name : {"PAT", "NONE", "path", "HOME"})
    EXPECT_EQ(environment_variable(environment, name), std::nullopt) << name;
}

TEST(EnvironmentVariableTest, TheFirstEntryCountsAsForGetenv) {
  const std::vector<std::string> twice{"A=1", "A=2"};
  EXPECT_EQ(environment_variable(twice, "A"), "1");
}

TEST(EnvironmentVariableTest, EveryEntryOfANameIsErasedAndNoOther) {
  std::vector<std::string> environment{"A=1", "AB=2", "A=", "B=A=1"};
  erase_variable(environment, "A");
  EXPECT_EQ(environment, (std::vector<std::string>{"AB=2", "B=A=1"}));
}

}  // namespace
}  // namespace drun
