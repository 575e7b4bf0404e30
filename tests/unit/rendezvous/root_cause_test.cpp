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

// What a drun without clues reports.
TEST(RootCauseTest, WithoutCluesItIsTheFirst) {
  EXPECT_EQ(root({hung("futex", 0), hung("recv", 0)}), 0U);
}

}  // namespace
}  // namespace drun::rendezvous
