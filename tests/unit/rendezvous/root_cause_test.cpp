// Whom a job of several nodes blames, case by case.
#include "rendezvous/root_cause.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace drun::rendezvous {
namespace {

FailureSummary failed(const std::string& cause) {
  FailureSummary failure;
  failure.cause = cause;
  return failure;
}

// `alike` ranks of a node hang so.
FailureSummary hung(const std::string& cause, int alike = 1) {
  FailureSummary failure = failed(cause);
  failure.hung = true;
  failure.clue.alike = alike;
  return failure;
}

FailureSummary behind(const std::string& cause) {
  FailureSummary failure = hung(cause);
  failure.clue.behind = true;
  return failure;
}

FailureSummary late(std::int64_t step) {
  FailureSummary failure = hung("late");
  failure.clue.step = step;
  return failure;
}

std::size_t root(const std::vector<FailureSummary>& failures) {
  std::vector<const FailureSummary*> pointers;
  for (const FailureSummary& each : failures)
    pointers.push_back(&each);
  return find_root(pointers);
}

TEST(RootCauseTest, WhatFailsFirstIsIt) {
  EXPECT_EQ(root({failed("exit code 1")}), 0U);
  EXPECT_EQ(root({failed("exit code 1"), behind("x"), failed("exit code 2")}), 0U);
}

TEST(RootCauseTest, WhoIsBehindIsItWhoeverSpeaksFirst) {
  EXPECT_EQ(root({behind("x"), hung("futex"), hung("recv")}), 0U);
  EXPECT_EQ(root({hung("futex"), hung("recv"), behind("x")}), 2U);
  EXPECT_EQ(root({hung("futex"), behind("x"), behind("x")}), 1U);
}

TEST(RootCauseTest, ElseOneThatWaitsForAProcessOfItsOwn) {
  FailureSummary own = hung("read for its child", 3);
  own.clue.for_own_child = true;
  EXPECT_EQ(root({hung("recv", 1), own}), 1U);
  EXPECT_EQ(root({own, hung("recv", 1)}), 0U);
  EXPECT_EQ(root({hung("recv", 1), own, behind("x")}), 2U);
  EXPECT_TRUE(is_nearer(own.clue, hung("recv").clue));
}

TEST(RootCauseTest, OfAsManyRatherTheOneThatWaitsForNobodyElse) {
  FailureSummary victim = hung("recv");
  victim.clue.for_others = true;
  EXPECT_EQ(root({victim, hung("futex")}), 1U);
  EXPECT_TRUE(is_nearer(hung("futex").clue, victim.clue));
  EXPECT_EQ(root({victim, hung("futex", 2)}), 0U) << "fewer wait where it does";
}

TEST(RootCauseTest, ElseOneOfTheFewestThatHangAlikeOverAllNodes) {
  EXPECT_EQ(root({hung("futex", 2), hung("futex", 2), hung("recv", 3)}), 2U);
  EXPECT_EQ(root({hung("futex", 2), hung("recv", 3), hung("recv", 3)}), 0U);
  EXPECT_EQ(root({hung("futex"), hung("recv")}), 0U) << "nothing tells";
}

// Of the first rank of each node and of its others.
TEST(RootCauseTest, TheOthersOfANodeCountToo) {
  FailureSummary first = hung("recv", 1);
  first.others = {{{{4, 7}}, "futex", ""}, {{{9, 9}}, "futex", "words of its own"}};
  FailureSummary second = hung("pipe", 2);
  second.others = {{{{1, 3}}, "recv", ""}, {{{0, 0}}, "pipe", "counted by the clue"}};
  EXPECT_EQ(root({first, second}), 1U);
}

TEST(RootCauseTest, APlaceThatIsNotKnownIsNoRareOne) {
  EXPECT_EQ(root({hung("unknown", 0), hung("futex", 8), hung("futex", 8)}), 1U);
  EXPECT_TRUE(is_nearer(hung("futex", 8).clue, hung("unknown", 0).clue));
}

TEST(RootCauseTest, TheLowestStepIsItIfAllTellOne) {
  EXPECT_EQ(root({late(4), late(3), late(4)}), 1U);
  EXPECT_EQ(root({late(4), late(3), hung("late")}), 0U);
}

TEST(RootCauseTest, OfThoseThatHangWhoFailsOtherwiseIsAConsequence) {
  EXPECT_EQ(root({late(4), failed("exit code 1"), late(3)}), 2U);
}

// ---- whose node has named another ----

// Two ranks of a node hang in different places: it cannot know which of them is the odd one.
FailureSummary torn(int first, const std::string& cause, const std::string& other) {
  FailureSummary failure = hung(cause);
  failure.rank = first;
  failure.pid = 100 + first;
  failure.log_file = "log of the first";
  failure.others = {{{{first + 1, first + 1}}, other, "words", 100 + first + 1}};
  return failure;
}

FailureSummary named(const std::vector<FailureSummary>& failures) {
  std::vector<const FailureSummary*> pointers;
  for (const FailureSummary& each : failures)
    pointers.push_back(&each);
  FailureSummary root = failures[find_root(pointers)];
  name_rarest(root, pointers);
  return root;
}

TEST(RootCauseTest, TheOddRankOfANodeIsNamedThoughItsNodeNamedAnother) {
  FailureSummary alike = hung("recv", 2);
  alike.others = {{{{1, 1}}, "recv", ""}};
  const FailureSummary root = named({alike, torn(2, "recv", "sleep")});
  EXPECT_EQ(root.rank, 3);
  EXPECT_EQ(root.local_rank, 1);
  EXPECT_EQ(root.pid, 103);
  EXPECT_EQ(root.cause, "sleep");
  EXPECT_EQ(root.last_words, "words");
  EXPECT_EQ(root.log_file, "") << "the other one's";
  EXPECT_EQ(root.clue.alike, 1);
  const std::vector<FailedRanks> others{{{{2, 2}}, "recv", "", 102}};
  EXPECT_EQ(root.others, others);
  // Once more, as a new leader does: nothing changes.
  EXPECT_EQ(named({alike, root}), root);
  EXPECT_EQ(named({alike, torn(2, "sleep", "recv")}).rank, 2) << "its node was right";
}

TEST(RootCauseTest, OfSeveralOddRanksTheLowestIsNamed) {
  FailureSummary many = hung("recv", 3);
  many.rank = 0;
  many.others = {{{{1, 2}}, "recv", ""}, {{{3, 4}}, "sleep", "", 103}};
  const FailureSummary root = named({many});
  EXPECT_EQ(root.rank, 3);
  const std::vector<FailedRanks> others{{{{0, 2}}, "recv", "", 0}, {{{4, 4}}, "sleep", "", 0}};
  EXPECT_EQ(root.others, others);
}

TEST(RootCauseTest, OfSeveralOddPlacesTheRarestIsNamed) {
  FailureSummary many = hung("recv", 4);
  many.others = {{{{1, 3}}, "recv", ""},
                 {{{4, 6}}, "sleep", "", 104},
                 {{{7, 7}}, "read", "", 107},
                 {{{8, 9}}, "write", "", 108}};
  EXPECT_EQ(named({many}).rank, 7);
}

TEST(RootCauseTest, WhoIsNamedForAReasonStays) {
  FailureSummary alike = hung("recv", 2);
  FailureSummary first = torn(2, "recv", "sleep");
  first.clue.behind = true;
  EXPECT_EQ(named({alike, first}).rank, 2);
  first = torn(2, "recv", "sleep");
  first.clue.for_own_child = true;
  EXPECT_EQ(named({alike, first}).rank, 2);
  first = torn(2, "recv", "sleep");
  first.clue.step = 4;
  alike.clue.step = 5;
  EXPECT_EQ(named({alike, first}).rank, 2);
  first = torn(2, "recv", "exit code 1");
  first.others.front().pid = 0;  // it does not hang
  EXPECT_EQ(named({first, alike}).rank, 2);
}

// ---- by what their stacks say ----

// As hung_ranks.cpp says it.
FailureSummary in_frame(int rank, const std::string& call, const std::string& frame, int alike) {
  FailureSummary failure = hung("it waits in " + call + (frame.empty() ? "" : " in " + frame));
  failure.rank = failure.local_rank = rank;
  failure.pid = 100 + rank;
  failure.clue.alike = alike;
  failure.clue.place = {frame, call};
  return failure;
}

FailedRanks others_in_frame(RankRange ranks, const std::string& call, const std::string& frame) {
  const FailureSummary like = in_frame(ranks.first, call, frame, 1);
  return {{ranks}, like.cause, "", like.pid, like.clue.place};
}

// In a collective of the program's own rank 1 accepts what the others connect to; so its node has
// named rank 0, which is somewhere else.
TEST(RootCauseTest, AnotherStackTellsMoreThanAnotherSystemCall) {
  FailureSummary node = in_frame(0, "futex", "lock_twice (train)", 1);
  node.others = {others_in_frame({1, 1}, "accept", "reduce (train)"),
                 others_in_frame({2, 7}, "recvfrom", "reduce (train)")};
  EXPECT_EQ(named({node}).rank, 0);
  // Of two that are somewhere else their system calls say nothing either.
  node.clue.alike = 2;
  node.others = {others_in_frame({1, 1}, "poll", "lock_twice (train)"),
                 others_in_frame({2, 2}, "accept", "reduce (train)"),
                 others_in_frame({3, 7}, "recvfrom", "reduce (train)")};
  EXPECT_EQ(named({node}).rank, 0);
  FailureSummary second = in_frame(8, "connect", "reduce (train)", 8);
  second.others = {others_in_frame({9, 15}, "recvfrom", "reduce (train)")};
  EXPECT_EQ(named({second, node}).rank, 0);
  EXPECT_EQ(named({second, second, in_frame(16, "recvfrom", "save (train)", 1)}).rank, 16);
}

TEST(RootCauseTest, WhereAllStacksAreTheSameTheSystemCallTells) {
  FailureSummary first = in_frame(0, "recvfrom", "reduce (train)", 2);
  first.others = {others_in_frame({1, 1}, "recvfrom", "reduce (train)")};
  FailureSummary second = in_frame(2, "recvfrom", "reduce (train)", 1);
  second.others = {others_in_frame({3, 3}, "accept", "reduce (train)")};
  const FailureSummary root = named({first, second});
  EXPECT_EQ(root.rank, 3);
  EXPECT_EQ(root.clue.place.call, "accept");
  const std::vector<FailedRanks> others{others_in_frame({2, 2}, "recvfrom", "reduce (train)")};
  EXPECT_EQ(root.others, others);
  EXPECT_EQ(named({first, root}), root) << "as a new leader sees it";
}

// Its look has failed, or took too long.
TEST(RootCauseTest, ANodeWhoseStacksAreNotKnownIsNotBlamedForThat) {
  FailureSummary known = in_frame(0, "futex", "c10d::Work::wait", 8);
  known.clue.for_others = true;
  FailureSummary blind = in_frame(8, "futex", "", 2);
  blind.others = {others_in_frame({9, 9}, "futex", "")};
  EXPECT_EQ(root({blind, known}), 1U);
  EXPECT_EQ(named({blind, known}).rank, 0);
  blind.clue.place.call = "read";
  blind.others.clear();
  EXPECT_EQ(root({known, blind}), 1U) << "it is not where the others are";
  known.clue.place.frame.clear();
  EXPECT_EQ(
      root({in_frame(0, "futex", "", 3), in_frame(8, "futex", "", 3), in_frame(9, "read", "", 2)}),
      2U)
      << "if no stack is known, there is nothing else to go by";
}

// What a drun without clues reports.
TEST(RootCauseTest, WithoutCluesItIsTheFirst) {
  EXPECT_EQ(root({hung("futex", 0), hung("recv", 0)}), 0U);
}

}  // namespace
}  // namespace drun::rendezvous
