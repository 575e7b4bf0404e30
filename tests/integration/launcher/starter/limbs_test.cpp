// The hosts that are started from here, with real launchers.
#include "launcher/starter/limbs.hpp"

#include <asio/io_context.hpp>
#include <gtest/gtest.h>

#include "integration/launcher/starter/starter_rig.hpp"

namespace drun::launcher {
namespace {

using test::run_until;

// The starter tries a host that is not there for as long as the job runs.
TEST(LimbsTest, AHostThatIsTriedAgainKeepsNoEdgeOfAnEarlierTry) {
  asio::io_context io{1};
  int failed = 0;
  Limbs limbs(io, {[&failed](const hosts::Frame& frame) {
                     if (frame.type == hosts::FrameType::Failed) ++failed;
                   },
                   [] {}});
  hosts::Branch branch;
  branch.launcher = {"false"};
  branch.drun = "/bin/drun";
  branch.fan_out = 1;
  branch.targets = {{0, "node0"}};
  limbs.start(branch, "");
  for (int tries = 1; tries <= 3; ++tries) {
    EXPECT_EQ(limbs.edges(), 1U);
    ASSERT_TRUE(run_until(io, [&] { return failed == tries && limbs.edges() == 0; })) << failed;
    limbs.start_again({0, "node0"});
  }
  limbs.kill();
  EXPECT_TRUE(run_until(io, [&] { return limbs.idle() && limbs.edges() == 0; }));
}

}  // namespace
}  // namespace drun::launcher
