// What counts as the fault of a node, case by case.
#include "rendezvous/set_aside.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

using testing::HasSubstr;

FailureSummary failure(int rank, const std::string& cause, const std::string& last_words = "") {
  FailureSummary result;
  result.rank = rank;
  result.exit_code = 1;
  result.cause = cause;
  result.last_words = last_words;
  return result;
}

struct Rig {
  Rig() {
    state.round.nodes = 2;
    config.exclude_after = 2;
    for (const char* ticket : {"a", "b", "c"})
      state.members[ticket].document.host = std::string("node-") + ticket;
  }
  // A round in which these failed, the first one first, spends a restart.
  void fail(const std::vector<Failure>& failures) {
    state.failures = failures;
    for (const SetAside& each : note_cost(state, state.failures.front(), config, round))
      cleared.push_back(each.host);
  }
  std::string why(const std::string& ticket) const {
    return why_aside(state, config, round, ticket, "node-" + ticket);
  }

  State state{Keys("job")};
  Config config;
  RoundDocument round;
  std::vector<std::string> cleared;  // hosts
};

TEST(SetAsideTest, TwoRestartsByItselfAreEnough) {
  Rig rig;
  rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_EQ(rig.why("b"), "");
  rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_EQ(rig.why("b"), "its workers failed first in 2 rounds, last rank 1: exit code 1");
  EXPECT_EQ(rig.why("a"), "");
  rig.config.exclude_after = 0;
  EXPECT_EQ(rig.why("b"), "");
}

TEST(SetAsideTest, WhatItsPeersDieOfThenIsNoExcuse) {
  Rig rig;
  for (int i = 0; i < 2; ++i)
    rig.fail({{"b", failure(1, "exit code 1", "CUDA error")},
              {"a", failure(0, "exit code 1", "connection closed by peer")},
              {"c", failure(2, "killed by SIGABRT", "CUDA error")}});
  EXPECT_THAT(rig.why("b"), HasSubstr("failed first in 2 rounds"));
  EXPECT_EQ(rig.why("a"), "");
}

TEST(SetAsideTest, WhatAllNodesDieOfIsTheProgram) {
  Rig rig;
  for (int i = 0; i < 5; ++i)
    rig.fail({{"b", failure(1, "exit code 1", "no module x")},
              {"a", failure(0, "exit code 1", "no module x")}});
  EXPECT_TRUE(rig.round.costs.empty());
}

FailureSummary late(int rank, int step) {
  auto result = failure(rank, "gave no heartbeat after step " + std::to_string(step),
                        "printed by rank " + std::to_string(rank));
  result.hung = true;
  result.clue.step = step;
  return result;
}

// They say how far they have come: those that have come equally far wait for one another.
TEST(SetAsideTest, OfNodesThatHangAtTheSameStepNobodyIsToBlame) {
  Rig rig;
  for (int i = 0; i < 3; ++i)
    rig.fail({{"b", late(1, 3)}, {"c", late(2, 4)}, {"a", late(0, 3)}});
  EXPECT_TRUE(rig.round.costs.empty());
  for (int i = 0; i < 2; ++i)
    rig.fail({{"b", late(1, 3)}, {"c", late(2, 4)}, {"a", late(0, 4)}});
  EXPECT_THAT(rig.why("b"), HasSubstr("failed first in 2 rounds"));
}

// The others may hang at the same step, and have given their last heartbeat later.
TEST(SetAsideTest, WhoIsLateWithItsHeartbeatIsToBlameOnlyOnceTheOthersHaveTold) {
  Rig rig;
  rig.state.round.nodes = 3;
  for (int i = 0; i < 3; ++i)
    rig.fail({{"b", late(1, 3)}, {"a", late(0, 4)}});
  for (int i = 0; i < 3; ++i)
    rig.fail({{"b", late(1, 3)}, {"a", late(0, 4)}, {"c", failure(2, "exit code 1")}});
  EXPECT_TRUE(rig.round.costs.empty());
  rig.state.succeeded = 1;
  for (int i = 0; i < 2; ++i)
    rig.fail({{"b", late(1, 3)}, {"a", late(0, 4)}});
  EXPECT_THAT(rig.why("b"), HasSubstr("failed first in 2 rounds"));
}

TEST(SetAsideTest, WhatDoesNotCount) {
  for (int which = 0; which < 4; ++which) {
    Rig rig;
    FailureSummary each = failure(1, "exit code 1");
    if (which == 0) each.timed_out = true;
    if (which == 1) each.exit_code = kCannotRun;
    if (which == 2) each.exit_code = kNotFound;
    if (which == 3) rig.state.round.nodes = 1;
    for (int i = 0; i < 3; ++i)
      rig.fail({{"b", each}});
    EXPECT_TRUE(rig.round.costs.empty()) << which;
  }
}

TEST(SetAsideTest, IfOthersFailAsWellItIsTheProgramUnlessTheyAreSetAsideOrGone) {
  Rig rig;
  rig.fail({{"a", failure(0, "exit code 2")}});
  for (int i = 0; i < 2; ++i)
    rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_EQ(rig.why("b"), "");
  rig.round.set_aside.push_back({"a", "node-a", "for a reason", 0, "exit code 2"});
  EXPECT_NE(rig.why("b"), "");
  EXPECT_EQ(rig.why("a"), "for a reason");
  rig.round.set_aside.clear();
  rig.state.members.erase("a");
  EXPECT_NE(rig.why("b"), "");
}

TEST(SetAsideTest, TheSameFailureOfItsSuccessorIsTheProgram) {
  Rig rig;
  rig.round.set_aside.push_back({"a", "node-a", "for a reason", 1, "exit code 1"});
  for (int i = 0; i < 2; ++i)
    rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_EQ(rig.why("b"), "");
}

TEST(SetAsideTest, TheSameFailureOfItsSuccessorClearsIt) {
  Rig rig;
  for (int i = 0; i < 2; ++i)
    rig.fail({{"a", failure(1, "exit code 1")}});
  rig.round.set_aside.push_back({"a", "node-a", rig.why("a"), 1, "exit code 1"});
  rig.fail({{"c", failure(0, "exit code 1")}});
  rig.fail({{"b", failure(1, "exit code 2")}});
  rig.fail({{"a", failure(1, "exit code 1")}});
  EXPECT_THAT(rig.cleared, testing::IsEmpty()) << "elsewhere, otherwise, or itself";
  EXPECT_NE(rig.why("a"), "");
  rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_THAT(rig.cleared, testing::ElementsAre("node-a"));
  EXPECT_EQ(rig.why("a"), "");
  rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_THAT(rig.cleared, testing::ElementsAre("node-a")) << "once";
  for (const char* ticket : {"a", "b"})
    EXPECT_EQ(rig.why(ticket), "");
}

// Its host was lost as well: that the program cannot do.
TEST(SetAsideTest, WhoIsClearedMayBeSetAsideForSomethingElse) {
  Rig rig;
  rig.round.set_aside.push_back({"a", "node-a", "for a reason", 1, "exit code 1"});
  rig.fail({{"b", failure(1, "exit code 1")}});
  EXPECT_EQ(rig.why("a"), "");
  rig.round.lost_hosts["node-a"] = 2;
  EXPECT_EQ(rig.why("a"), "it was lost 2 times");
}

TEST(SetAsideTest, AHostIsLostOnceARoundAndNotIfItWasTold) {
  Rig rig;
  for (const auto& [ticket, host] : {std::pair{"a", "node-a"}, {"a2", "node-a"}, {"c", "node-c"}}) {
    rig.state.slots[ticket].host = host;
    rig.state.slots[ticket].lost = true;
  }
  rig.state.slots["b"].host = "node-b";
  rig.state.slots["c"].told = true;
  // It has begun in the place of a2.
  rig.state.members["a3"].document.host = "node-a";
  note_lost_hosts(rig.state, rig.round);
  EXPECT_EQ(rig.why("a"), "");
  rig.state.slots.erase("a2");
  note_lost_hosts(rig.state, rig.round);
  EXPECT_EQ(rig.round.agents_of_lost, (std::map<std::string, int>{{"node-a", 2}})) << "at most";
  EXPECT_EQ(rig.why("a"), "it was lost 2 times");
  EXPECT_EQ(rig.why("b"), "");
  EXPECT_EQ(rig.why("c"), "");
}

// A store that succeeds another knows nothing of the node that went down with that one.
TEST(SetAsideTest, TheHostOfALostStoreIsLostAsWell) {
  Rig rig;
  rig.state.slots["b"].host = "node-b";
  rig.state.slots["b"].group_rank = 1;
  rig.state.round.latest = {1, 5, 1, 2, 0};
  rig.state.round.store_host = "node-a";
  rig.state.occupied = {1};
  note_lost_hosts(rig.state, rig.round);
  EXPECT_TRUE(rig.round.lost_hosts.empty()) << "all places are claimed";
  rig.state.vacant = 1;
  note_lost_hosts(rig.state, rig.round);
  EXPECT_EQ(rig.round.lost_hosts, (std::map<std::string, int>{{"node-a", 1}}));
  rig.state.slots["b"].host = "node-a";
  note_lost_hosts(rig.state, rig.round);
  EXPECT_EQ(rig.round.agents_of_lost, (std::map<std::string, int>{{"node-a", 2}}));
  rig.state.round.reason = "node-a (group rank 0) leaves the job: received SIGTERM";
  note_lost_hosts(rig.state, rig.round);
  rig.state.round.reason.clear();
  rig.state.occupied = {0, 1};
  note_lost_hosts(rig.state, rig.round);
  EXPECT_EQ(rig.round.lost_hosts, (std::map<std::string, int>{{"node-a", 2}}));
}

TEST(SetAsideTest, WhoHadToLeaveItsPlaceIsToldOnce) {
  Rig rig;
  const std::vector<std::string> tickets{"a", "b", "c"};
  std::vector<Candidate> all;
  for (const std::string& ticket : tickets)
    all.push_back({&ticket, &rig.state.members[ticket].document, 0, {}, ticket == "b"});
  rig.config.excluded_hosts = {{"node-b", "listed"}};
  EXPECT_TRUE(take_set_aside(rig.state, rig.config, all, all, rig.round).empty());
  const std::vector<Candidate> chosen{all[0], all[2]};
  const auto first = take_set_aside(rig.state, rig.config, all, chosen, rig.round);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].host, "node-b");
  EXPECT_EQ(first[0].why, "listed");
  EXPECT_TRUE(take_set_aside(rig.state, rig.config, all, chosen, rig.round).empty());
}

TEST(SetAsideTest, TheDocumentTellsTheNextLeader) {
  RoundDocument round;
  round.costs["t"] = {2, 5, "exit code 1"};
  round.lost_hosts["node7"] = 3;
  round.agents_of_lost["node7"] = 4;
  round.set_aside.push_back({"t", "node1", "why", 5, "exit code 1", true});
  const auto back = decode_round(encode(round));
  ASSERT_TRUE(back) << back.error().what();
  EXPECT_EQ(*back, round);
}

}  // namespace
}  // namespace drun::rendezvous
