// What the drun of each replica group is told.
#include "launcher/local_nodes/replica_groups.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(ReplicaGroupsTest, EachHasNamesAndFilesOfItsOwn) {
  Options options;
  options.replica_groups = 2;
  options.run_id = "job7";
  options.report_file = "/reports/end.json";
  options.inferred = "the place is Slurm's";
  options.notes = {"a note"};
  options.inherited = {"A=1", "TORCHFT_LIGHTHOUSE=old"};
  options.lighthouse = "x";
  options.master_port = std::uint16_t{29500};
  const Options first = group_options(options, 0, "http://h:1");
  const Options second = group_options(options, 1, "http://h:1");
  EXPECT_EQ(first.run_id, "job7.group0");
  EXPECT_EQ(second.run_id, "job7.group1");
  EXPECT_EQ(second.report_file, "/reports/end.group1.json");
  EXPECT_EQ(second.replica_group, 1);
  EXPECT_FALSE(starts_groups(second));
  EXPECT_THAT(second.inherited, ElementsAre("A=1", "TORCHFT_LIGHTHOUSE=http://h:1"));
  EXPECT_EQ(second.lighthouse, "");
  // These were said already, by who starts the groups.
  EXPECT_EQ(first.inferred, "");
  EXPECT_THAT(first.notes, IsEmpty());
  // One alone can have these.
  EXPECT_EQ(first.master_port, 29500);
  EXPECT_FALSE(second.master_port);
  EXPECT_EQ(first.stdin_rank, 0);
  EXPECT_FALSE(second.stdin_rank);
}

TEST(ReplicaGroupsTest, ThisMachinesDevicesAreSharedOut) {
  Options options;
  options.replica_groups = 2;
  options.local_nodes = 2;
  for (const char* where : {"a", "b", "c", "d"}) {
    WorkerPlacement place;
    place.description = where;
    options.placement.agents.push_back({place});
  }
  const Options second = group_options(options, 1, "");
  ASSERT_EQ(second.placement.agents.size(), 2U);
  EXPECT_EQ(second.placement.of(0, 0).description, "c");
  EXPECT_EQ(second.placement.of(1, 0).description, "d");
  const Options first = group_options(options, 0, "");
  ASSERT_EQ(first.placement.agents.size(), 2U);
  EXPECT_EQ(first.placement.of(1, 0).description, "b");
}

TEST(ReplicaGroupsTest, TheHostsAreSharedOutInTheirOrder) {
  Options options;
  options.replica_groups = 2;
  options.replica_group = 0;
  options.start.emplace();
  options.start->fan_out = 32;
  options.start->flags = {"drun"};
  for (const char* name : {"a", "b", "c", "d"}) {
    hosts::Host host;
    host.name = name;
    options.start->hosts.push_back(host);
  }
  const Options second = group_options(options, 1, "http://h:1");
  ASSERT_EQ(second.start->hosts.size(), 2U);
  EXPECT_EQ(second.start->hosts.front().name, "c");
  EXPECT_EQ(second.start->hosts.back().name, "d");
  EXPECT_THAT(second.start->flags, ElementsAre("drun", "--replica-group-id=1"));
  EXPECT_THAT(second.start->environment, ElementsAre("TORCHFT_LIGHTHOUSE=http://h:1"));
  EXPECT_EQ(second.start->fan_out, 16U);
}

TEST(ReplicaGroupsTest, TheLighthouseIsAJobOfOneWorkerThatAShellRuns) {
  Options options;
  options.lighthouse = "torchft_lighthouse --bind [::]:${port} --name '$HOME'";
  options.max_restarts = 5;
  options.inherited = {"A=1"};
  const Options lighthouse = lighthouse_options(options, 1234);
  EXPECT_THAT(lighthouse.command,
              ElementsAre("/bin/sh", "-c", "torchft_lighthouse --bind [::]:1234 --name '$HOME'"));
  EXPECT_EQ(lighthouse.nproc_per_node, 1);
  EXPECT_EQ(lighthouse.max_restarts, 0);
  EXPECT_FALSE(lighthouse.tells_its_end);
  EXPECT_FALSE(lighthouse.stdin_rank);
  EXPECT_THAT(lighthouse.inherited, Contains("A=1"));
  EXPECT_THAT(lighthouse.command, Not(Contains("torchft_lighthouse")));
}

}  // namespace
}  // namespace drun::launcher
