#include "ctl/drunctl_health.hpp"

#include <gtest/gtest.h>

namespace drun::ctl {
namespace {

TEST(HealthLineTest, SaysOnceWhatAnAgentIs) {
  status::AgentStatus status;
  status.job = "train";
  status.pid = 4711;
  status.phase = status::Phase::Spare;
  status.waiting = "spare: the job runs with 2 of 2 nodes, this one waits to be needed";
  EXPECT_EQ(health_line(status),
            "job train: spare: the job runs with 2 of 2 nodes, this one waits to be needed "
            "(pid 4711)");
  status.phase = status::Phase::Gathering;
  status.waiting = "waiting 00:07: 1 of 2 nodes";
  EXPECT_EQ(health_line(status), "job train: gathering: waiting 00:07: 1 of 2 nodes (pid 4711)");
}

}  // namespace
}  // namespace drun::ctl
