#include "launcher/dry_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using drun::test::expect_golden;
using test::options_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DryRunTest, TheFlagIsAskedForByOptions) {
  EXPECT_TRUE(options_of("--dry-run p").dry_run);
  EXPECT_FALSE(options_of("p").dry_run);
}

TEST(DryRunTest, OneNodeIsKnownButForItsPort) {
  expect_golden("command_line/dry_run_one_node.txt",
                dry_run(options_of("--nproc-per-node 2 train.py --out=$local_rank")));
}

TEST(DryRunTest, ANameThatIsMadeUpForTheJobIsNotShown) {
  for (const char* flags : {"", "--standalone ", "--local-nodes 2 "}) {
    const std::string text = dry_run(options_of(std::string(flags) + "./train"));
    EXPECT_THAT(text, Not(HasSubstr("fresh-id"))) << flags;
    EXPECT_THAT(text, HasSubstr("\njob id:   <a fresh one>\n")) << flags;
    EXPECT_THAT(text, HasSubstr("  TORCHELASTIC_RUN_ID=<a fresh one>\n")) << flags;
  }
  EXPECT_THAT(dry_run(options_of("--rdzv-id mine ./train")), HasSubstr("\njob id:   mine\n"));
}

TEST(DryRunTest, AStaticNodeKnowsItsRanks) {
  expect_golden(
      "command_line/dry_run_static.txt",
      dry_run(options_of("--nnodes 2 --nproc-per-node 2 --node-rank 1 --master-addr node0 "
                         "--master-port 29501 ./train")));
}

TEST(DryRunTest, RankZeroIsShownAPortThatItCanBind) {
  const auto shown = [](const std::string& flags) {
    return dry_run(options_of("--worker-store rank0 " + flags + " ./train"));
  };
  const std::string free = "  MASTER_PORT=<a free port of node 0>\n";
  const std::string one = shown("--master-addr node0 --master-port 29501");
  EXPECT_THAT(one, HasSubstr("  MASTER_ADDR=node0\n"));
  EXPECT_THAT(one, HasSubstr("  MASTER_PORT=29501\n"));
  const std::string two = shown("--nnodes 2 --node-rank 0 --master-addr h --master-port 29501");
  EXPECT_THAT(two, HasSubstr("meet at:  h:29501 (static)\n"));
  EXPECT_THAT(two, HasSubstr(free));
  EXPECT_THAT(shown("--nnodes 2 --rdzv-backend static --rdzv-endpoint h:1 --master-port 29501"),
              HasSubstr("  MASTER_PORT=29501\n"));
  EXPECT_THAT(shown("--nnodes 2 --rdzv-endpoint h:1 --master-port 29501"),
              HasSubstr("  MASTER_PORT=29501\n"));
  EXPECT_THAT(shown("--standalone"), HasSubstr(free));
}

TEST(DryRunTest, WorkersAreShownTheirWayThroughTheirAgent) {
  const auto shown = [](const std::string& flags) {
    return dry_run(options_of("--worker-store local " + flags + " ./train"));
  };
  const std::string here =
      "  MASTER_ADDR=127.0.0.1\n  MASTER_PORT=<a free port of the worker's own node>\n";
  EXPECT_THAT(shown("--standalone"), HasSubstr(here));
  const std::string two = shown("--nnodes 2 --node-rank 0 --master-addr h --master-port 29501");
  EXPECT_THAT(two, HasSubstr("meet at:  h:29501 (static)\n"));
  EXPECT_THAT(two, HasSubstr(here));
  EXPECT_THAT(two, HasSubstr("  DRUN_MASTER_ADDR=h\n"));
  EXPECT_THAT(shown("--nnodes 2 --rdzv-endpoint h:1 --master-port 29501"),
              AllOf(HasSubstr(here), HasSubstr("  DRUN_MASTER_ADDR=<address of node 0>\n")));
}

TEST(DryRunTest, AnElasticNodeShowsWhatTheRendezvousWillDecide) {
  expect_golden(
      "command_line/dry_run_elastic.txt",
      dry_run(options_of("--nnodes 1:4 --nproc-per-node 2 --rdzv-endpoint node0:29400 ./train")));
  expect_golden("command_line/dry_run_groups.txt",
                dry_run(options_of("--replica-groups 2 ./train")));
  expect_golden(
      "command_line/dry_run_steps.txt",
      dry_run(options_of("--nnodes 2:6:2 --nproc-per-node 4 --rdzv-endpoint node0:29400 ./train")));
}

TEST(DryRunTest, LocalNodesAreAllShown) {
  expect_golden("command_line/dry_run_local_nodes.txt",
                dry_run(options_of("--local-nodes 2 --nproc-per-node 2 ./train")));
  const std::string text = dry_run(options_of("--local-nodes 3 --nnodes 1:4 ./train"));
  EXPECT_THAT(text, HasSubstr("nodes:    3, 1 worker each\n")) << "as many as were asked for";
  EXPECT_THAT(text, HasSubstr("  WORLD_SIZE=3\n"));
}

TEST(DryRunTest, DevicesAreShown) {
  const std::string text = dry_run(options_of("--gpu-ids 3,1 --virtual-local-rank ./train"));
  EXPECT_THAT(text, HasSubstr("  on GPU 3 (0000:03:00.0); CPUs 0-11 (not bound)\n"
                              "  LOCAL_RANK=0 RANK=0 ROLE_RANK=0 CUDA_VISIBLE_DEVICES=3 "
                              "CUDA_DEVICE_ORDER=PCI_BUS_ID "
                              "JAX_PROCESS_ID=0 ./train"));
  EXPECT_THAT(text, HasSubstr("LOCAL_RANK=0 RANK=1 ROLE_RANK=1 CUDA_VISIBLE_DEVICES=1 "
                              "CUDA_DEVICE_ORDER=PCI_BUS_ID JAX_PROCESS_ID=1 ./train"));
}

TEST(DryRunTest, NothingInheritedIsShown) {
  const std::string text = dry_run(options_of("./train", {"SECRET_TOKEN=hunter2", "PATH=/x"}));
  EXPECT_THAT(text, Not(HasSubstr("SECRET_TOKEN")));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

TEST(DryRunTest, ManyNodesAreCutShort) {
  const std::string text = dry_run(options_of("--nnodes 1000 --rdzv-endpoint h ./train"));
  EXPECT_THAT(text, HasSubstr("and so on to node 999"));
  EXPECT_THAT(text, Not(HasSubstr("node 16:")));
}

TEST(DryRunTest, EachReplicaGroupHasItsHosts) {
  const std::string text = dry_run(options_of("-H a,b,c,d --replica-groups 2 ./train"));
  const auto second = text.find("replica group 1:\n");
  ASSERT_NE(second, std::string::npos) << text;
  EXPECT_LT(text.find("node 1 on b:"), second);
  EXPECT_GT(text.find("node 0 on c:"), second);
  EXPECT_NE(text.find("--replica-group-id=1 --node-rank=1", second), std::string::npos) << text;
  EXPECT_EQ(text.find("--replica-group-id=1"), text.find("--replica-group-id=1", second));
}

}  // namespace
}  // namespace drun::launcher
