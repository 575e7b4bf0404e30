// How many of the nodes that are there run: --nnodes MIN:MAX:STEP.
#include "rendezvous/node_count.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "rendezvous/messages.hpp"
#include "support/board.hpp"

namespace drun::rendezvous {
namespace {

using test::Board;

Config steps(int least, int most, int step) {
  Config config;
  config.min_nodes = least;
  config.max_nodes = most;
  config.node_step = step;
  config.quiet_period = Milliseconds(2'000);
  config.last_call_timeout = Milliseconds(30'000);
  return config;
}

std::string name(int number) {
  return std::to_string(number);
}

// `there` nodes, of which a round runs.
Board running(const Config& config, int there) {
  Board board(config);
  for (int i = 0; i < there; ++i)
    board.join(name(i));
  board.pass(Milliseconds(2'000));
  board.run();
  return board;
}

void next_round(Board& board) {
  board.settle();
  board.all_left();
  board.run();
}

TEST(NodeCountTest, IsTheLargestMultipleThatIsThere) {
  struct Case {
    int least, most, step, there, taken;
  };
  for (const Case& c :
       {Case{4, 16, 4, 3, 0}, Case{4, 16, 4, 4, 4}, Case{4, 16, 4, 7, 4}, Case{4, 16, 4, 8, 8},
        Case{4, 16, 4, 15, 12}, Case{4, 16, 4, 16, 16}, Case{4, 16, 4, 99, 16}, Case{6, 9, 3, 5, 0},
        Case{6, 9, 3, 8, 6}, Case{8, 8, 8, 7, 0}, Case{8, 8, 8, 8, 8}, Case{1, 5, 1, 3, 3},
        Case{1, 5, 1, 0, 0}, Case{1, 5, 1, 6, 5}}) {
    EXPECT_EQ(nodes_taken(steps(c.least, c.most, c.step), c.there), c.taken)
        << c.there << " of " << c.least << ":" << c.most << ":" << c.step;
  }
}

TEST(NodeCountTest, AWholeStepMakesARoundLarger) {
  struct Case {
    int running, joiners;
    bool larger;
  };
  for (const Case& c : {Case{4, 0, false}, Case{4, 3, false}, Case{4, 4, true}, Case{4, 7, true},
                        Case{12, 3, false}, Case{12, 4, true}, Case{16, 9, false}})
    EXPECT_EQ(makes_larger(steps(4, 16, 4), c.running, c.joiners), c.larger)
        << c.running << " and " << c.joiners;
  EXPECT_TRUE(makes_larger(steps(1, 3, 1), 2, 1));
  EXPECT_FALSE(makes_larger(steps(1, 3, 1), 3, 1));
}

TEST(NodeStepTest, ARoundBeginsWithAMultipleAfterTheQuietPeriod) {
  for (int there = 0; there <= 9; ++there) {
    Board board(steps(2, 8, 2));
    for (int i = 0; i < there; ++i)
      board.join(name(i));
    board.settle();
    EXPECT_EQ(board.phase() == Phase::Preparing, there >= 8) << there << " at once";
    board.pass(Milliseconds(2'000));
    board.settle();
    EXPECT_EQ(board.state().round.nodes, std::min(there - there % 2, 8)) << there;
  }
}

TEST(NodeStepTest, ALostNodeShrinksTheJobToTheNextMultiple) {
  Board board = running(steps(4, 8, 4), 8);
  ASSERT_EQ(board.state().round.nodes, 8);
  board.gone("1");
  next_round(board);
  ASSERT_EQ(board.phase(), Phase::Running);
  EXPECT_EQ(board.state().round.nodes, 4);
  EXPECT_EQ(board.state().round.restart_count, 0);
  // Of the survivors those with the lowest ranks go on, in their order.
  for (const auto& [ticket, rank] : {std::pair{"0", 0}, {"2", 1}, {"3", 2}, {"4", 3}}) {
    ASSERT_TRUE(board.state().slots.contains(ticket)) << ticket;
    EXPECT_EQ(board.state().slots.at(ticket).group_rank, rank) << ticket;
  }
}

TEST(NodeStepTest, ASpareTakesALostNodesPlaceAndTheSizeStays) {
  Board board = running(steps(4, 8, 4), 5);
  ASSERT_EQ(board.state().round.nodes, 4);
  board.gone("2");
  next_round(board);
  EXPECT_EQ(board.state().round.nodes, 4);
  EXPECT_EQ(board.state().slots.at("4").group_rank, 2);
}

TEST(NodeStepTest, NewcomersWaitUntilAWholeStepIsThere) {
  Board board = running(steps(4, 12, 4), 4);
  for (int i = 4; i < 7; ++i) {
    board.join(name(i));
    board.pass(Milliseconds(600'000));
    board.settle();
    ASSERT_EQ(board.phase(), Phase::Running) << i + 1 << " are there";
    EXPECT_FALSE(next_deadline(board.state(), board.config())) << "nobody has to look again";
  }
  board.join("7");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Running) << "others may come with it";
  EXPECT_EQ(next_deadline(board.state(), board.config()), board.now() + Milliseconds(2'000));
  board.pass(Milliseconds(2'000));
  next_round(board);
  EXPECT_EQ(board.state().round.nodes, 8);
  EXPECT_EQ(board.state().slots.at("0").group_rank, 0);
  // Four more make it full, so that nobody is waited for.
  for (int i = 8; i < 12; ++i)
    board.join(name(i));
  next_round(board);
  EXPECT_EQ(board.state().round.nodes, 12);
}

// One that comes while a round is prepared makes a new plan only if that would be larger.
TEST(NodeStepTest, APlanIsNotMadeAnewForLessThanAStep) {
  Board board(steps(2, 6, 2));
  board.join("0");
  board.join("1");
  board.pass(Milliseconds(2'000));
  board.settle();
  ASSERT_EQ(board.phase(), Phase::Preparing);
  board.join("2");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Preparing);
  board.join("3");
  board.settle();
  EXPECT_EQ(board.phase(), Phase::Gathering);
}

TEST(NodeStepTest, TooFewForAStepAreWaitedFor) {
  Board board = running(steps(4, 8, 4), 4);
  board.gone("3");
  next_round(board);
  EXPECT_EQ(board.phase(), Phase::Gathering);
  EXPECT_EQ(board.state().round.waiting,
            "3 of 4 to 8 nodes, in steps of 4 ([0-2]); 3 (group rank 3) was lost in round 1");
}

TEST(NodeStepTest, TheNodesAgreeOnIt) {
  const auto job = full_agreement(steps(4, 16, 4));
  EXPECT_EQ(job.at("nnodes"), "4:16:4");
  EXPECT_EQ(full_agreement(steps(4, 16, 1)).at("nnodes"), "4:16");
  EXPECT_EQ(full_agreement(steps(8, 8, 4)).at("nnodes"), "8");
  EXPECT_EQ(disagreement("node7", full_agreement(steps(4, 16, 2)), job),
            "node7 has --nnodes 4:16:2; the job has --nnodes 4:16:4; give all nodes the same");
  // Defaults that follow from the number of nodes are not the user's.
  auto forgotten = full_agreement(steps(1, 1, 1));
  forgotten["rdzv-conf"] = "successors=0";
  auto other = job;
  other["rdzv-conf"] = "successors=2";
  EXPECT_EQ(disagreement("node7", forgotten, other),
            "node7 has --nnodes 1; the job has --nnodes 4:16:4; give all nodes the same");
  forgotten["nnodes"] = other["nnodes"];
  EXPECT_EQ(disagreement("node7", forgotten, other),
            "node7 has --rdzv-conf successors=0; the job has --rdzv-conf successors=2; give all "
            "nodes the same");
}

TEST(NodeStepTest, TheUserReadsIt) {
  EXPECT_EQ(nodes_text(steps(4, 16, 4)), "4 to 16 nodes, in steps of 4");
  EXPECT_EQ(nodes_text(steps(8, 8, 4)), "8 nodes");
  EXPECT_EQ(beyond_the_step_text(steps(4, 16, 4), 3), "; 3 spares wait (steps of 4)");
  EXPECT_EQ(beyond_the_step_text(steps(4, 16, 4), 1), "; 1 spare waits (steps of 4)");
  EXPECT_EQ(beyond_the_step_text(steps(4, 16, 4), 0), "");
  EXPECT_EQ(beyond_the_step_text(steps(4, 16, 1), 3), "");
}

}  // namespace
}  // namespace drun::rendezvous
