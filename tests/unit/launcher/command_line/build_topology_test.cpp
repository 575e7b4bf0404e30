// --rank-order topology: where this node is in the network, and what decides that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using rendezvous::RankOrder;
using test::options_of;
using test::parse_line;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kSlurm{"SLURM_TOPOLOGY_ADDR=spine1.leaf4.n7",
                                      "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node"};
const std::string kJob = "--nnodes 2 --rdzv-endpoint h ";

TEST(TopologyOptionsTest, SlurmsVariablesCountWhereItIsAskedFor) {
  const Options options = options_of(kJob + "--rank-order topology ./train", kSlurm);
  EXPECT_EQ(options.rank_order, RankOrder::Topology);
  EXPECT_EQ(options.network, "spine1/leaf4");
  EXPECT_EQ(options_of(kJob + "./train", kSlurm).network, "");
  EXPECT_THAT(parse_line(kJob + "--rank-order topology --explain ./train", kSlurm).text,
              HasSubstr("in the network       spine1/leaf4\n"));
}

TEST(TopologyOptionsTest, AFileWinsAndAsksForIt) {
  const Options options = options_of(kJob + "--topology-file /topology ./train", kSlurm);
  EXPECT_EQ(options.rank_order, RankOrder::Topology);
  EXPECT_EQ(options.network, "core/leaf1") << "of node7, as this machine is called";
  EXPECT_EQ(options_of(kJob + "--topology-file /topology ./train", {"SLURMD_NODENAME=n8"}).network,
            "core/leaf2");
}

TEST(TopologyOptionsTest, WhatSaysNothingIsToldAndWhatIsWrongRefused) {
  EXPECT_THAT(options_of(kJob + "--rank-order topology ./train").notes,
              Contains(HasSubstr("nothing says where this node is in the network")));
  EXPECT_EQ(parse_line(kJob + "--topology-file /none ./train").text,
            "drun: error: --topology-file '/none': cannot read this file: it is not there\n");
  EXPECT_EQ(parse_line(kJob + "--topology-file /hosts ./train").text,
            "drun: error: --topology-file '/hosts': line 1: 'node7': expected SwitchName, "
            "BlockName, Nodes or Switches\n");
  EXPECT_EQ(parse_line(kJob + "--topology-file /topology --rank-order host ./train").text,
            "drun: error: --rank-order 'host': --topology-file is for topology\n");
}

// A scheduler's number would put each node where it has it in its list.
TEST(TopologyOptionsTest, ASchedulersRankDoesNotCountAndAnAskedForOneDoes) {
  auto step = test::step_of_two_nodes();
  EXPECT_EQ(options_of("./train", step).node_rank, 1);
  step.insert(step.end(), kSlurm.begin(), kSlurm.end());
  EXPECT_FALSE(options_of("--rank-order topology ./train", step).node_rank);
  EXPECT_EQ(options_of("--rank-order topology --node-rank 0 ./train", step).node_rank, 0);
}

TEST(TopologyOptionsTest, HostsAreNotToldRanksThen) {
  const auto told = [](const std::string& line) {
    return agent_command(*options_of(line).start, 1, {"place", 0});
  };
  EXPECT_THAT(told("-H a,b ./train"), Contains("--node-rank=1"));
  EXPECT_THAT(told("-H a,b --rank-order topology ./train"), Not(Contains("--node-rank=1")));
  // Each host reads its own copy of the file, which need not be here.
  EXPECT_THAT(told("-H a,b --topology-file /none ./train"),
              AllOf(Contains("--topology-file=/none"), Not(Contains("--node-rank=1"))));
}

}  // namespace
}  // namespace drun::launcher
