// Which variables go to other hosts.
#include "launcher/hosts/handed_environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher::hosts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HandedEnvironmentTest, WhatBelongsHereStays) {
  const auto handed = handed_environment(
      {"PATH=/bin", "HOME=/root", "SSH_AUTH_SOCK=/x", "SLURM_JOB_ID=1", "NCCL_DEBUG=INFO",
       "PMI_RANK=0", "BASH_FUNC_x%%=() { :; }", "PET_NNODES=2", "EMPTY=", "TERM=xterm", "PWD=/x"},
      "", {});
  ASSERT_TRUE(handed);
  EXPECT_THAT(handed->environment,
              ElementsAre("EMPTY=", "NCCL_DEBUG=INFO", "PATH=/bin", "PET_NNODES=2"));
  EXPECT_THAT(handed->missing, IsEmpty());
}

TEST(HandedEnvironmentTest, WhatIsAskedForGoesBeforeAFileAndThatBeforeWhatIsSet) {
  const auto handed =
      handed_environment({"A=set", "B=set", "C=set", "HOME=/root", "DISPLAY=:0"},
                         "# a comment\n\n  export B=in file \r\nC=\"quoted\"\nDISPLAY\n#D=4\n",
                         {"C=x=y\nz", "HOME", "NOT_SET"});
  ASSERT_TRUE(handed);
  EXPECT_THAT(handed->environment,
              ElementsAre("A=set", "B=in file ", "C=x=y\nz", "DISPLAY=:0", "HOME=/root"));
  EXPECT_THAT(handed->missing, ElementsAre("NOT_SET"));
}

TEST(HandedEnvironmentTest, WhatIsNoNameIsRefusedWithoutItsValue) {
  EXPECT_EQ(handed_environment({}, "A=1\nnot a name=secret\n", {}).error().what(),
            "line 2: 'not a name' is no name of a variable");
  EXPECT_EQ(handed_environment({}, "", {"1A=secret"}).error().what(),
            "'1A' is no name of a variable");
  EXPECT_FALSE(handed_environment({}, "", {""}));
}

}  // namespace
}  // namespace drun::launcher::hosts
