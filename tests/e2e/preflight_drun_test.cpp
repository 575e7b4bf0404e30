// What the nodes say of themselves is compared, and who is odd is named.
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agents_of_a_job.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"

namespace drun::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class PreflightTest : public AgentsOfAJob {
 protected:
  Arguments job(const std::string& nodes, const Arguments& more = {}) const {
    return Arguments{"--nnodes",       nodes,         "--rdzv-endpoint",
                     port_.endpoint(), "--rdzv-conf", "last_call_timeout=0.3"} +
           more + telling_workers();
  }
  void start_with(const Arguments& arguments, const std::string& variable) {
    Launch launch;
    launch.environment = {variable};
    agents_.push_back(std::make_unique<DrunProcess>(arguments, launch));
  }
  // Elastic, so that the second one comes to a store that the first hosts.
  void start_first() {
    start_with(job("1:2"), "NCCL_DEBUG=first-value");
    ASSERT_TRUE(says(0, "round 1 ")) << agent(0).err();
  }

  ReservedPort port_;
};

TEST_F(PreflightTest, TheLeaderNamesTheOddNodeInOneLine) {
  start_first();
  start_with(job("1:2"), "NCCL_DEBUG=second-value");
  EXPECT_TRUE(agent(0).wait_for_err("(group rank 1): NCCL_DEBUG B, ")) << agent(0).err();
  EXPECT_TRUE(agent(0).wait_for_err("(group rank 0): A; set it alike on all nodes"))
      << agent(0).err();
  ASSERT_TRUE(says(1, "rank 1 of 2 ")) << agent(1).err();
  stop_all(0);
  for (std::size_t i : {0U, 1U}) {
    EXPECT_THAT(agent(i).err(), Not(HasSubstr("-value")));
  }
  EXPECT_THAT(agent(1).err(), Not(HasSubstr("NCCL_DEBUG")));
}

TEST_F(PreflightTest, AnotherProgramIsNamed) {
  TempDir first;
  TempDir second;
  const auto start_in = [&](const TempDir& folder, const std::string& words) {
    (void)folder.write("train.sh", "#!/bin/sh\n# " + words + "\necho started\nexec sleep 1000\n",
                       true);
    Launch launch;
    launch.directory = folder.path();
    agents_.push_back(std::make_unique<DrunProcess>(
        Arguments{"--nnodes", "1:2", "--rdzv-endpoint", port_.endpoint(), "./train.sh"}, launch));
  };
  start_in(first, "one");
  ASSERT_TRUE(says(0, "started")) << agent(0).err();
  start_in(second, "two");
  EXPECT_TRUE(agent(0).wait_for_err("(group rank 1): program B, ")) << agent(0).err();
  stop_all(0);
}

TEST_F(PreflightTest, OffSaysNothing) {
  start_with(job("1:2", {"--preflight", "off"}), "NCCL_DEBUG=1");
  ASSERT_TRUE(says(0, "round 1 ")) << agent(0).err();
  start_with(job("1:2", {"--preflight", "off"}), "NCCL_DEBUG=2");
  ASSERT_TRUE(says(0, " of 2 ")) << agent(0).err();
  ASSERT_TRUE(says(1, " of 2 ")) << agent(1).err();
  stop_all(0);
  EXPECT_THAT(agent(0).err(), Not(HasSubstr("NCCL_DEBUG")));
}

TEST_F(PreflightTest, WithNothingToCompareItSaysSo) {
  EXPECT_THAT(run_drun({"--preflight", "warn", "true"}).err,
              HasSubstr("--preflight warn has nothing to compare: the job has one node"));
  EXPECT_THAT(run_drun({"--preflight", "warn", "--local-nodes", "2", "true"}).err,
              HasSubstr("--preflight warn has nothing to compare: all nodes are this machine"));
  EXPECT_THAT(run_drun({"--local-nodes", "2", "true"}).err, Not(HasSubstr("compare")));
  EXPECT_THAT(run_drun({"--preflight", "off", "true"}).err, Not(HasSubstr("compare")));
}

TEST_F(PreflightTest, StrictRefusesTheNodeThatHasAnotherProgram) {
  TempDir first;
  TempDir second;
  const auto start_in = [&](const TempDir& folder, const std::string& words) {
    (void)folder.write("train.sh", "#!/bin/sh\n# " + words + "\nexec sleep 1000\n", true);
    Launch launch;
    launch.directory = folder.path();
    agents_.push_back(std::make_unique<DrunProcess>(
        Arguments{"--nnodes", "2", "--rdzv-endpoint", port_.endpoint(), "--preflight", "strict",
                  "--rdzv-conf", "is_host=" + std::string(agents_.empty() ? "true" : "false"),
                  "./train.sh"},
        launch));
  };
  start_in(first, "one");
  start_in(second, "two");
  const Finished odd = agent(1).finish();
  EXPECT_EQ(odd.code, 94) << odd.err;
  EXPECT_THAT(odd.err, HasSubstr("--preflight strict: "));
  EXPECT_THAT(odd.err, HasSubstr(": program B, "));
  EXPECT_THAT(odd.err, HasSubstr("copy the same program to all nodes"));
  EXPECT_TRUE(agent(0).running());
  stop_all(0);
}

class ExcludeTest : public PreflightTest {
 protected:
  bool everybody_is_bad_ = false;

  // The workers of the second node, or of rank 1, fail whenever `folder` has a file "go"; the third
  // is a spare.
  void start_three(const TempDir& folder, const Arguments& more = {}) {
    const std::string program =
        "echo round $DRUN_ROUND rank $RANK of $WORLD_SIZE restarts $TORCHELASTIC_RESTART_COUNT.; "
        "while [ \"$BAD\" = $RANK ]; do if [ -e " +
        (folder.path() / "go").string() + " ]; then exit 7; fi; sleep 0.05; done; exec sleep 1000";
    for (int i = 0; i < 3; ++i) {
      Launch launch;
      launch.environment = {i == 1 || everybody_is_bad_ ? "BAD=1" : "BAD"};
      agents_.push_back(std::make_unique<DrunProcess>(
          Arguments{"--nnodes", "2", "--max-restarts", "5", "--rdzv-endpoint", port_.endpoint(),
                    "--rdzv-conf", "is_host=" + std::string(i == 0 ? "true" : "false")} +
              more + Arguments{"sh", "-c", program},
          launch));
      // The first one leads, and so tells.
      if (i == 0) {
        ASSERT_TRUE(agent(0).wait_for_err("1 of 2 nodes")) << agent(0).err();
      }
      if (i == 1) {
        ASSERT_TRUE(says(1, "round 1 rank 1 of 2 ")) << agent(1).err();
      }
    }
    ASSERT_TRUE(agent(2).wait_for_err("spare: the job runs")) << agent(2).err();
    (void)folder.write("go", "");
  }
};

TEST_F(ExcludeTest, ANodeThatCostTwoRestartsGivesItsPlaceToTheSpare) {
  const TempDir folder;
  const std::string events = (folder.path() / "events.jsonl").string();
  start_three(folder, {"--events", events});
  ASSERT_TRUE(says(2, "round 3 rank 1 of 2 restarts 2.")) << agent(0).err() << agent(2).err();
  EXPECT_TRUE(agent(0).wait_for_err(
      "is set aside, a spare takes its place: its workers failed first in 2 rounds, last rank 1: "
      "exit code 7"))
      << agent(0).err();
  EXPECT_TRUE(eventually([&] {
    return read_file(events).find("is set aside, a spare takes its place") != std::string::npos;
  })) << read_file(events);
  stop_all(0);
}

TEST_F(ExcludeTest, TheListOutlivesTheJob) {
  const TempDir folder;
  const std::string list = (folder.path() / "bad-hosts").string();
  start_three(folder, {"--exclude-file", list});
  ASSERT_TRUE(says(2, "round 3 rank 1 of 2 restarts 2.")) << agent(0).err() << agent(2).err();
  EXPECT_TRUE(agent(0).wait_for_err("is set aside")) << agent(0).err();
  EXPECT_TRUE(eventually([&] {
    const bool there = std::filesystem::exists(list);
    return there &&
           read_file(list).find(" its workers failed first in 2 rounds") != std::string::npos;
  }));
  stop_all(0);
}

// A program that fails at rank 1 wherever that is.
TEST_F(ExcludeTest, WhatItsSuccessorDoesAsWellTakesTheLineBack) {
  const TempDir folder;
  const std::string list = folder.write("bad-hosts", "other 1 of yesterday\n# mine\n");
  everybody_is_bad_ = true;
  start_three(folder, {"--exclude-file", list});
  EXPECT_TRUE(agent(0).wait_for_err("is set aside, a spare takes its place")) << agent(0).err();
  EXPECT_TRUE(agent(0).wait_for_err("it is the program, not the node")) << agent(0).err();
  EXPECT_EQ(agent(0).finish().code, 7);
  EXPECT_THAT(agent(0).err(), Not(HasSubstr("was set aside: its workers")));
  EXPECT_EQ(read_file(list), "# mine\n");
}

TEST_F(ExcludeTest, ZeroExcludesNobody) {
  const TempDir folder;
  start_three(folder, {"--exclude-after", "0"});
  EXPECT_EQ(agent(0).finish().code, 7);
  EXPECT_THAT(agent(0).err(), Not(HasSubstr("set aside")));
}

TEST_F(ExcludeTest, AListThatCannotBeOneIsRefusedAtOnce) {
  const Finished folder = run_drun({"--exclude-file", "/nonexistent/list", "true"});
  EXPECT_EQ(folder.code, 2);
  EXPECT_THAT(folder.err, HasSubstr("--exclude-file /nonexistent/list: its folder must be there"));
  EXPECT_EQ(run_drun({"--exclude-file", "/tmp", "true"}).code, 2);
}

}  // namespace
}  // namespace drun::test
