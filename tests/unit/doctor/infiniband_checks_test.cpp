#include "doctor/infiniband_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/file_tree.hpp"

namespace drun::doctor {
namespace {

using testing::HasSubstr;

TEST(InfinibandChecksTest, SaysWhatIsWrongWithWhichPort) {
  test::FileTree files;
  const std::string port = "/sys/class/infiniband/mlx5_0/ports/1";
  files.write(port + "/state", "4: ACTIVE\n");
  files.write(port + "/rate", "400 Gb/sec (4X NDR)\n");
  files.write(port + "/counters/link_downed", "0\n");
  files.write("/sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  auto checks = check_infiniband(files.root());
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0], passed("RDMA mlx5_0 port 1", "ACTIVE, 400 Gb/sec (4X NDR)"));
  EXPECT_EQ(checks[1].verdict, Verdict::Warn);
  EXPECT_EQ(checks[1].reason, "its state is DOWN");

  files.write(port + "/counters/link_downed", "3\n");
  files.write(port + "/counters/symbol_error", "17\n");
  checks = check_infiniband(files.root());
  EXPECT_EQ(checks[0].verdict, Verdict::Warn);
  EXPECT_THAT(checks[0].reason, HasSubstr("link_downed 3, symbol_error 17"));
}

TEST(InfinibandChecksTest, AMachineWithoutAnyHasNothingToSay) {
  EXPECT_TRUE(check_infiniband("/nonexistent").empty());
}

}  // namespace
}  // namespace drun::doctor
