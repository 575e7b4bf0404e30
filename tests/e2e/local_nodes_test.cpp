// What --local-nodes leaves when one of its processes is killed.
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<pid_t> children_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;)
    children.push_back(child);
  return children;
}

class LocalNodesTest : public testing::Test {
 protected:
  static std::vector<std::string> job(const std::string& nnodes) {
    return {"--local-nodes",
            "3",
            "--nnodes",
            nnodes,
            "--nproc-per-node",
            "2",
            "sh",
            "-c",
            "echo up $RANK; exec sleep 1000"};
  }
  static bool all_run(DrunProcess& drun) {
    for (int rank = 0; rank < 6; ++rank)
      if (!drun.wait_for_out("up " + std::to_string(rank) + "\n")) return false;
    return true;
  }
};

TEST_F(LocalNodesTest, NothingIsLeftWhenTheirParentIsKilled) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  drun.signal(SIGKILL);
  EXPECT_TRUE(drun.wait());
  EXPECT_TRUE(drun.survivors_gone(kPatience)) << testing::PrintToString(drun.survivors());
}

TEST_F(LocalNodesTest, TheJobEndsWhenANodeIsKilledThatItNeeds) {
  DrunProcess drun(job("3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[1], SIGKILL);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  EXPECT_THAT(finished.err, HasSubstr("drun: error: an agent (pid " + std::to_string(agents[1]) +
                                      ") was killed by SIGKILL\n"));
  EXPECT_THAT(finished.err, HasSubstr("drun: error: stopping: 2 of at least 3 nodes left\n"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST_F(LocalNodesTest, TheJobGoesOnWithFewerNodesWhereThatIsAllowed) {
  DrunProcess drun(job("2:3"));
  ASSERT_TRUE(all_run(drun)) << drun.err();
  const auto agents = children_of(drun.pid());
  ASSERT_THAT(agents, SizeIs(3));
  ::kill(agents[2], SIGKILL);
  EXPECT_TRUE(drun.wait_for_err("2 nodes, 4 ranks")) << drun.err();
  drun.signal(SIGTERM);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGKILL);
  EXPECT_THAT(finished.survivors, IsEmpty());
}

}  // namespace
}  // namespace drun::test
