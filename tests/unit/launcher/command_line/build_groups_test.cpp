// --replica-groups: which group a node belongs to, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/command_line/parse.hpp"
#include "launcher/hosts/start_plan.hpp"
#include "support/options_support.hpp"

namespace drun::launcher {
namespace {

using test::options_of;
using test::parse_line;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Environment = std::vector<std::string>;

// "group of groups, id, rank in the group, where it meets", or the error.
std::string meaning(const std::string& line, const Environment& environment = {}) {
  const Parsed parsed = parse_line(line + " ./train", environment);
  if (!parsed.options) {
    EXPECT_EQ(parsed.exit_code, 2);
    return parsed.text.substr(std::string("drun: error: ").size());
  }
  const Options& options = *parsed.options;
  const std::string group =
      options.replica_group < 0 ? "all" : std::to_string(options.replica_group);
  return group + " of " + std::to_string(options.replica_groups) + ", " + options.run_id +
         ", rank " + (options.node_rank ? std::to_string(*options.node_rank) : "any") + " of " +
         std::to_string(options.max_nodes) +
         (options.backend == Backend::Standalone
              ? ", own store at " + options.local_addr.value_or("127.0.0.1")
              : ", at " + meeting_place(options));
}

TEST(BuildGroupsTest, ANodeIsInTheGroupThatItIsCountedOffTo) {
  const std::string job = "--replica-groups 3 --nnodes 2 --rdzv-endpoint h:1 --rdzv-id j ";
  EXPECT_EQ(meaning(job + "--node-rank 0"), "0 of 3, j.group0, rank 0 of 2, at h:1");
  EXPECT_EQ(meaning(job + "--node-rank 3"), "1 of 3, j.group1, rank 1 of 2, at h:1");
  EXPECT_EQ(meaning(job + "--node-rank 5"), "2 of 3, j.group2, rank 1 of 2, at h:1");
  EXPECT_EQ(meaning(job + "--node-rank 6"),
            "--node-rank '6': the ranks of 3 groups of 2 nodes are 0 to 5\n");
  EXPECT_EQ(meaning(job + "--replica-group-id 2"), "2 of 3, j.group2, rank any of 2, at h:1");
  EXPECT_EQ(meaning(job + "--replica-group-id 2 --node-rank 1"),
            "2 of 3, j.group2, rank 1 of 2, at h:1");
  EXPECT_EQ(meaning(job + "--replica-group-id 3"),
            "--replica-group-id '3': expected a whole number from 0 to 2\n");
  EXPECT_EQ(meaning(job),
            "--rdzv-endpoint with --replica-groups: say which group this node belongs to, with "
            "--replica-group-id, or count the nodes off with --node-rank\n");
}

// The other groups of torchft must reach the store of a node's group.
TEST(BuildGroupsTest, AGroupOfOneNodeMeetsNobodyAndIsReachedByItsName) {
  EXPECT_EQ(meaning("--replica-groups 3 --replica-group-id 1 --rdzv-id j"),
            "1 of 3, j.group1, rank any of 1, own store at node7");
  EXPECT_EQ(meaning("--replica-groups 3 --node-rank 2 --rdzv-endpoint h:1 --rdzv-id j"),
            "2 of 3, j.group2, rank 0 of 1, own store at node7");
  EXPECT_EQ(meaning("--replica-groups 3 --replica-group-id 1 --rdzv-id j --local-addr eth1"),
            "1 of 3, j.group1, rank any of 1, own store at 10.1.2.3");
}

TEST(BuildGroupsTest, WithoutAPlaceToMeetAllAreOnThisMachine) {
  EXPECT_EQ(meaning("--replica-groups 2"),
            "all of 2, fresh-id, rank any of 1, own store at 127.0.0.1");
  EXPECT_TRUE(starts_groups(options_of("--replica-groups 2 ./train")));
  const Options options =
      options_of("--replica-groups 2 --local-nodes 2 --nproc-per-node gpu ./train");
  EXPECT_TRUE(starts_groups(options));
  EXPECT_EQ(options.local_nodes, 2);
  EXPECT_EQ(options.placement.agents.size(), 4U);
  EXPECT_THAT(meaning("--replica-groups 2 --nnodes 2"), HasSubstr("several nodes need a place"));
}

TEST(BuildGroupsTest, ASchedulersNodesAreSharedOut) {
  const Environment step{"SLURM_JOB_ID=4711",
                         "SLURM_JOB_NUM_NODES=4",
                         "SLURM_JOB_NODELIST=n[1-4]",
                         "SLURM_STEP_ID=0",
                         "SLURM_STEP_NUM_NODES=4",
                         "SLURM_STEP_NODELIST=n[1-4]",
                         "SLURM_STEP_NUM_TASKS=4",
                         "SLURM_STEP_TASKS_PER_NODE=1(x4)",
                         "SLURM_NODEID=3",
                         "SLURM_PROCID=3",
                         "SLURM_LOCALID=0"};
  EXPECT_EQ(meaning("--replica-groups 2", step), "1 of 2, 4711.0.group1, rank 1 of 2, at n1:24711");
  EXPECT_EQ(meaning("--replica-groups 4", step),
            "3 of 4, 4711.0.group3, rank 0 of 1, own store at node7");
  EXPECT_EQ(meaning("--replica-groups 4 --nnodes 1", step),
            "3 of 4, 4711.0.group3, rank 0 of 1, own store at node7");
  EXPECT_EQ(meaning("--replica-groups 3", step),
            "--replica-groups '3': Slurm has 4 nodes for this job (SLURM_STEP_NUM_NODES), which do "
            "not make 3 groups of the same size; --nnodes says how many each group has\n");
  EXPECT_THAT(options_of("--replica-groups 4 ./train", step).notes, IsEmpty())
      << "each task is one of the job's nodes";
  EXPECT_THAT(options_of("--replica-groups 2 ./train", step).inferred,
              HasSubstr("2 nodes in each group (SLURM_STEP_NUM_NODES)"));
}

TEST(BuildGroupsTest, HostsAreSharedOut) {
  const Options options = options_of("-H a,b,c,d --replica-groups 2 --lighthouse L ./train");
  EXPECT_TRUE(starts_groups(options));
  EXPECT_EQ(options.max_nodes, 2);
  EXPECT_EQ(options.lighthouse, "L");
  EXPECT_THAT(options.start->flags,
              ElementsAre("drun", "--nnodes=2", "--replica-groups=2", "--rdzv-id=fresh-id"));
  EXPECT_EQ(meaning("-H a,b,c --replica-groups 2"),
            "--replica-groups '2': the list has 3 hosts, which do not make 2 groups of the same "
            "size\n");
  EXPECT_EQ(meaning("-H a,b --replica-groups 2 --replica-group-id 1"),
            "--replica-group-id is for one drun, and -H or --hostfile starts one on each host\n");
}

TEST(BuildGroupsTest, WhatCannotBeIsRefused) {
  EXPECT_EQ(meaning("--replica-group-id 0"),
            "--replica-group-id: say how many groups there are, with --replica-groups\n");
  EXPECT_EQ(meaning("--lighthouse x"),
            "--lighthouse: say how many groups there are, with --replica-groups\n");
  EXPECT_EQ(meaning("--replica-groups 0"),
            "--replica-groups '0': expected a whole number from 1 to 10000\n");
  EXPECT_THAT(meaning("--replica-groups 2 --nnodes 2 --node-rank 0 --master-addr h"),
              HasSubstr("replica groups of several nodes meet at an --rdzv-endpoint"));
  EXPECT_THAT(meaning("--replica-groups 2 --nnodes 2 --node-rank 0 --rdzv-endpoint a,b"),
              HasSubstr("each replica group would look for a majority of its own"));
  EXPECT_THAT(meaning("--replica-groups 2 --replica-group-id 0 --lighthouse x"),
              HasSubstr("give all of them TORCHFT_LIGHTHOUSE=http://HOST:29510"));
}

TEST(BuildGroupsTest, ExplainSaysWhichGroupThisIs) {
  EXPECT_THAT(parse_line("--replica-groups 2 --explain p").text,
              HasSubstr("replica groups       2, all on this machine\n"));
  EXPECT_THAT(parse_line("--replica-groups 2 --replica-group-id 1 --explain p").text,
              HasSubstr("replica groups       2, this is number 1\n"));
}

}  // namespace
}  // namespace drun::launcher
