#include "launcher/local_nodes/node_ends.hpp"

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/exit_statuses.hpp"

namespace drun::launcher {
namespace {

using Step = NodeEnds::Step;

using test::exited;
using test::killed;

struct End {
  process::ExitStatus status;
  bool unannounced = false;
  Step step = Step::None;
};

TEST(NodeEndsTest, WhatTheEndsOfThreeAgentsMean) {
  struct Case {
    std::string name;
    int min_nodes;
    std::vector<End> ends;
    int exit_code;
  };
  for (const auto& [name, min_nodes, ends, exit_code] : std::vector<Case>{
           {"success", 3, {{exited(0)}, {exited(0)}, {exited(0)}}, 0},
           {"a failure, which all agents give", 3, {{exited(7)}, {exited(7)}, {exited(7)}}, 7},
           {"a failure of one, as it saw it", 3, {{exited(0)}, {exited(125)}, {exited(0)}}, 125},
           {"the first failure counts", 3, {{exited(7)}, {exited(125)}, {exited(7)}}, 7},
           {"one is killed that is needed",
            3,
            {{killed(SIGKILL), false, Step::StopOthers}, {exited(143)}, {exited(143)}},
            137},
           {"the others are stopped once",
            3,
            {{killed(SIGKILL), false, Step::StopOthers}, {killed(SIGSEGV)}, {exited(143)}},
            137},
           {"one cannot join that is needed",
            3,
            {{exited(125), true, Step::StopOthers}, {exited(143)}, {exited(143)}},
            125},
           {"one is killed that is not needed",
            2,
            {{killed(SIGKILL)}, {exited(0)}, {exited(0)}},
            0},
           {"one is refused that is not needed",
            2,
            {{exited(125), true}, {exited(7)}, {exited(7)}},
            7},
           {"one comes after the end", 2, {{exited(0)}, {exited(125), true}, {exited(0)}}, 0},
           {"one does not hear of the end", 3, {{exited(7)}, {exited(125), true}, {exited(7)}}, 7},
           {"one is refused that is needed, after one that never joined",
            2,
            {{exited(0), true}, {exited(125), true, Step::StopOthers}, {exited(143)}},
            125},
           {"one is told to go that is not needed",
            2,
            {{exited(143), true}, {exited(0)}, {exited(0)}},
            0},
           {"one is told to go that is needed",
            3,
            {{exited(143), true, Step::StopOthers}, {exited(143), true}, {exited(143), true}},
            143},
           {"one that never joined succeeds", 3, {{exited(0), true}, {exited(0)}, {exited(0)}}, 0},
           {"too few, one after the other",
            2,
            {{killed(SIGKILL)}, {killed(SIGSEGV), false, Step::StopOthers}, {exited(143)}},
            137},
           {"the last one is killed", 1, {{exited(0)}, {exited(0)}, {killed(SIGKILL)}}, 0},
           {"all are killed", 1, {{killed(SIGTERM)}, {killed(SIGKILL)}, {killed(SIGKILL)}}, 143},
       }) {
    SCOPED_TRACE(name);
    NodeEnds nodes(3, min_nodes);
    int left = 3;
    for (const auto& [status, unannounced, step] : ends) {
      EXPECT_EQ(nodes.left(), left--);
      EXPECT_EQ(nodes.on_end(status, unannounced), step);
    }
    EXPECT_EQ(nodes.left(), 0);
    EXPECT_EQ(nodes.exit_code(), exit_code);
  }
}

TEST(NodeEndsTest, NobodyIsStoppedForALostOneWhenAllAreToStop) {
  NodeEnds nodes(3, 3);
  nodes.on_stop();
  EXPECT_EQ(nodes.on_end(killed(SIGKILL), false), Step::None);
  EXPECT_EQ(nodes.on_end(exited(143), false), Step::None);
  EXPECT_EQ(nodes.on_end(exited(143), false), Step::None);
  EXPECT_EQ(nodes.exit_code(), 143);
}

TEST(NodeEndsTest, WhenAllAreToldToGoTheirCodeIsTheJobs) {
  NodeEnds nodes(3, 1);
  EXPECT_EQ(nodes.on_end(killed(SIGKILL), false), Step::None);
  nodes.on_stop();
  EXPECT_EQ(nodes.on_end(exited(143), true), Step::None);
  EXPECT_EQ(nodes.on_end(exited(143), true), Step::None);
  EXPECT_EQ(nodes.exit_code(), 143);
}

TEST(NodeEndsTest, KilledAgentsGiveTheSignalThatWasOneTooMany) {
  for (const int first : {0, 143}) {
    NodeEnds nodes(2, 2);
    nodes.on_stop();
    EXPECT_EQ(nodes.on_end(exited(first), false), Step::None);
    EXPECT_FALSE(nodes.killed());
    nodes.on_killed(SIGQUIT);
    EXPECT_TRUE(nodes.killed());
    EXPECT_EQ(nodes.on_end(killed(SIGKILL), false), Step::None);
    EXPECT_EQ(nodes.exit_code(), first != 0 ? first : 128 + SIGQUIT);
  }
}

}  // namespace
}  // namespace drun::launcher
