// --replica-groups: independent worlds of one job, and their lighthouse.
#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "support/drun_process.hpp"

namespace drun::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

const std::string kSays =
    "echo group $REPLICA_GROUP_ID of $NUM_REPLICA_GROUPS rank $RANK of "
    "$WORLD_SIZE restarts $TORCHELASTIC_RESTART_COUNT.";

Arguments shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST(ReplicaGroupsTest, OneMachineHasSeveralWorlds) {
  const Finished finished = run_drun(Arguments{"--replica-groups", "2", "-n", "2"} + shell(kSays));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out),
              UnorderedElementsAre(
                  "group 0 of 2 rank 0 of 2 restarts 0.", "group 0 of 2 rank 1 of 2 restarts 0.",
                  "group 1 of 2 rank 0 of 2 restarts 0.", "group 1 of 2 rank 1 of 2 restarts 0."));
}

TEST(ReplicaGroupsTest, AGroupMayHaveSeveralLocalNodes) {
  const Finished finished =
      run_drun(Arguments{"--replica-groups", "2", "--local-nodes", "2"} + shell(kSays));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out),
              UnorderedElementsAre(
                  "group 0 of 2 rank 0 of 2 restarts 0.", "group 0 of 2 rank 1 of 2 restarts 0.",
                  "group 1 of 2 rank 0 of 2 restarts 0.", "group 1 of 2 rank 1 of 2 restarts 0."));
}

TEST(ReplicaGroupsTest, AFailureRestartsItsGroupAlone) {
  const TempDir folder;
  const std::string gate = (folder.path() / "gate").string();
  // Group 1 fails once; group 0 waits for its second try, and has not been started again by then.
  const std::string script = kSays +
                             "; case $REPLICA_GROUP_ID$TORCHELASTIC_RESTART_COUNT in 10) exit 7;; "
                             "11) : > " +
                             gate + ";; 0*) until [ -e " + gate + " ]; do sleep 0.05; done;; esac";
  const Finished finished =
      run_drun(Arguments{"--replica-groups", "2", "--max-restarts", "1"} + shell(script));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out),
              UnorderedElementsAre("group 0 of 2 rank 0 of 1 restarts 0.",
                                   "group 1 of 2 rank 0 of 1 restarts 0.",
                                   "group 1 of 2 rank 0 of 1 restarts 1."));
}

TEST(ReplicaGroupsTest, AGroupThatFailsForGoodEndsAloneAndGivesItsCode) {
  const TempDir folder;
  const std::string report = (folder.path() / "end.json").string();
  DrunProcess drun(Arguments{"--replica-groups", "2", "--report", report} +
                   shell("[ $REPLICA_GROUP_ID = 0 ] || exit 7; echo up; exec sleep 1000"));
  ASSERT_TRUE(drun.wait_for_out("up\n")) << drun.err();
  ASSERT_TRUE(
      drun.wait_for_err("drun: error: replica group 1 of 2 has failed for good (exit code "
                        "7); 1 group goes on\n"))
      << drun.err();
  EXPECT_TRUE(drun.running());
  EXPECT_THAT(drun.err(), HasSubstr("drun group 1: job failed: rank 0 "));
  EXPECT_THAT(read_file(folder.path() / "end.group1.json"), HasSubstr("\"exit_code\": 7"));
  drun.signal(SIGTERM);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 7) << finished.err;
  EXPECT_THAT(read_file(folder.path() / "end.group0.json"), HasSubstr("\"exit_code\": 143"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(ReplicaGroupsTest, ASignalStopsAllOfThem) {
  DrunProcess drun(Arguments{"--replica-groups", "2", "--lighthouse", "sleep 1000"} +
                   shell("echo up $REPLICA_GROUP_ID; exec sleep 1000"));
  ASSERT_TRUE(drun.wait_for_out("up 0\n")) << drun.err();
  ASSERT_TRUE(drun.wait_for_out("up 1\n")) << drun.err();
  drun.signal(SIGTERM);
  const Finished finished = drun.finish();
  EXPECT_EQ(finished.code, 128 + SIGTERM) << finished.err;
  EXPECT_THAT(finished.err, AllOf(Not(HasSubstr("error")), Not(HasSubstr("has ended"))));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

TEST(ReplicaGroupsTest, NothingIsLeftWhenTheirParentIsKilled) {
  // A lighthouse that is started by a script.
  DrunProcess drun(
      Arguments{"--replica-groups", "2", "--lighthouse", "sh -c 'sleep 1000 & echo there; wait'"} +
      shell("echo up $REPLICA_GROUP_ID; exec sleep 1000"));
  for (const char* text : {"up 0\n", "up 1\n", "lighthouse: there\n"})
    ASSERT_TRUE(drun.wait_for_out(text)) << drun.err();
  drun.signal(SIGKILL);
  EXPECT_TRUE(drun.wait());
  EXPECT_TRUE(drun.survivors_gone(kPatience)) << testing::PrintToString(drun.survivors());
}

TEST(ReplicaGroupsTest, TheLighthouseIsStartedOnceAndEndsWithThem) {
  const Finished finished =
      run_drun(Arguments{"--replica-groups", "2", "--lighthouse",
                         "sh -c 'sleep 1000 & echo at http://127.0.0.1:${port}; wait'"} +
               shell("echo told $TORCHFT_LIGHTHOUSE; exec sleep 1"));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.survivors, IsEmpty());
  const auto lines = split_lines(finished.out);
  ASSERT_EQ(lines.size(), 3U) << finished.out;
  std::vector<std::string> addresses;
  for (const std::string& line : lines)
    addresses.push_back(line.substr(line.rfind(' ') + 1));
  EXPECT_THAT(addresses[0], HasSubstr("http://127.0.0.1:"));
  EXPECT_EQ(addresses[1], addresses[0]);
  EXPECT_EQ(addresses[2], addresses[0]);
}

TEST(ReplicaGroupsTest, TheAddressOfALighthouseMayBeSaid) {
  Launch launch;
  launch.environment = {"TORCHFT_LIGHTHOUSE=http://elsewhere:1"};
  const Finished finished =
      run_drun(Arguments{"--replica-groups", "1"} + shell("echo $TORCHFT_LIGHTHOUSE"), launch);
  EXPECT_EQ(finished.out, "http://elsewhere:1\n");
  EXPECT_THAT(run_drun(Arguments{"--replica-groups", "1", "--lighthouse", "sleep 1000"} +
                       shell("echo $TORCHFT_LIGHTHOUSE"))
                  .out,
              "http://127.0.0.1:29510\n");
}

TEST(ReplicaGroupsTest, TheDeathOfTheLighthouseIsOneLine) {
  DrunProcess drun(Arguments{"--replica-groups", "1", "--lighthouse", "sh -c 'exit 3'"} +
                   shell("echo up; exec sleep 1000"));
  ASSERT_TRUE(drun.wait_for_out("up\n")) << drun.err();
  ASSERT_TRUE(drun.wait_for_err(
      "drun: error: the lighthouse has ended (exit code 3), and is not started again\n"))
      << drun.err();
  EXPECT_THAT(drun.err(), Not(HasSubstr("job failed")));
  drun.signal(SIGTERM);
  EXPECT_EQ(drun.finish().code, 128 + SIGTERM);
}

// One drun for each node, as in a job of Slurm.
class GroupsOfNodesTest : public AgentsOfAJob {
 protected:
  void start_node(int rank, const std::string& script) {
    start(Arguments{"--replica-groups", "2", "--nnodes", "2", "--rdzv-endpoint", port_.endpoint(),
                    "--node-rank", std::to_string(rank)} +
          shell(script));
  }
  ReservedPort port_;
};

TEST_F(GroupsOfNodesTest, TheGroupsMeetApartAtOneEndpoint) {
  const TempDir folder;
  const std::string gate = (folder.path() / "gate").string();
  const std::string script = kSays +
                             "; [ $REPLICA_GROUP_ID$RANK = 11 ] || exec sleep 1000; until [ -e " +
                             gate + " ]; do sleep 0.05; done; exit 7";
  start_node(0, script);
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 nodes")) << "it has the store";
  for (int rank = 1; rank < 4; ++rank)
    start_node(rank, script);
  for (std::size_t node = 0; node < 4; ++node)
    ASSERT_TRUE(says(node, "group " + std::to_string(node / 2) + " of 2 rank " +
                               std::to_string(node % 2) + " of 2 restarts 0."))
        << agent(node).err();
  // The second group ends with its failure; the first runs on.
  (void)folder.write("gate", "");
  for (const std::size_t node : {2U, 3U}) {
    const Finished finished = agent(node).finish();
    EXPECT_EQ(finished.code, 7) << finished.err;
  }
  EXPECT_TRUE(agent(0).running());
  EXPECT_TRUE(agent(1).running());
  stop_all(0);
}

TEST_F(GroupsOfNodesTest, OneThatTheStoreServesLongerIsNotHarmedByTheFirstsEnd) {
  const TempDir folder;
  const std::string gate = (folder.path() / "gate").string();
  const std::string script =
      "echo up; [ $REPLICA_GROUP_ID = 0 ] || until [ -e " + gate + " ]; do sleep 0.05; done";
  start_node(0, script);
  ASSERT_TRUE(agent(0).wait_for_err("1 of 2 nodes")) << "it has the store";
  for (int rank = 1; rank < 4; ++rank)
    start_node(rank, script);
  for (std::size_t node = 0; node < 4; ++node)
    ASSERT_TRUE(says(node, "up\n")) << agent(node).err();
  EXPECT_EQ(agent(1).finish().code, 0) << "its group is done";
  (void)folder.write("gate", "");
  for (const std::size_t node : {0U, 2U, 3U}) {
    const Finished finished = agent(node).finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

// Hosts of which a script makes this machine.
TEST(GroupsOfHostsTest, EachGroupIsStartedOnItsHosts) {
  const TempDir folder;
  const std::string login = folder.write("login", "#!/bin/sh\nshift\nexec sh -c \"$*\"\n", true);
  const Finished finished =
      run_drun(Arguments{"-H", "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4", "--launcher", login,
                         "--replica-groups", "2", "--lighthouse", "sleep 1000", "-x",
                         "TORCHFT_LIGHTHOUSE=http://here:1"} +
               shell("echo $REPLICA_GROUP_ID $RANK $WORLD_SIZE $TORCHFT_LIGHTHOUSE"));
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out),
              UnorderedElementsAre("0 0 2 http://here:1", "0 1 2 http://here:1",
                                   "1 0 2 http://here:1", "1 1 2 http://here:1"));
  EXPECT_THAT(finished.survivors, IsEmpty());
}

}  // namespace
}  // namespace drun::test
