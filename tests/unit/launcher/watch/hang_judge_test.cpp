#include "launcher/watch/hang_judge.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/rank_looks.hpp"

namespace drun::launcher {
namespace {

using hang::test::rank_with;
using std::chrono::minutes;
using std::chrono::seconds;
using Verdict = HangJudge::Verdict;

enum Does { Sleeps, MakesProgress, IsBusy };

// Looks at two workers in steps of the judge's own interval, a tenth of the timeout.
class HangJudgeTest : public testing::Test {
 protected:
  HangJudgeTest() { (void)look(); }

  Verdict look() {
    hang::NodeLook look;
    look.at = now_;
    look.ranks.emplace(1, rank_with(0, 0));
    look.ranks.emplace(2, rank_with(written_, cpu_ms_));
    return judge_.on_look(std::move(look), running_, now_);
  }
  // The second worker, for so many looks; the last verdict. The first one sleeps.
  Verdict then(Does does, int looks = 1) {
    Verdict verdict;
    for (int i = 0; i < looks; ++i) {
      if (does == MakesProgress) ++written_;
      if (does == IsBusy) cpu_ms_ += 10'000;
      now_ += judge_.interval();
      verdict = look();
    }
    return verdict;
  }
  static hang::RasAnswer gap(std::uint64_t fingerprint) {
    return {fingerprint, hang::CollectiveGap{"rank 3 has begun 1 AllReduce, the other 2", {}}};
  }
  Verdict answer(std::optional<hang::RasAnswer> said) {
    return judge_.on_answer({true, std::move(said)}, running_, now_);
  }

  HangJudge judge_{seconds(100)};
  HangJudge::Time now_{seconds(1'000)};
  std::uint64_t written_ = 0;
  std::uint64_t cpu_ms_ = 0;
  bool running_ = true;
};

TEST_F(HangJudgeTest, ThatAllHaveWaitedIsSaidOnceAndTakenBackOnce) {
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(then(Sleeps, 9).stalled, std::nullopt);
    EXPECT_EQ(then(Sleeps).stalled, true);
    EXPECT_EQ(then(Sleeps).stalled, std::nullopt);
    EXPECT_EQ(then(MakesProgress).stalled, false);
    EXPECT_EQ(then(MakesProgress).stalled, std::nullopt);
  }
}

TEST_F(HangJudgeTest, WorkersThatAreBeingStoppedDoNotHang) {
  running_ = false;
  EXPECT_EQ(then(Sleeps, 12).stalled, std::nullopt);
  running_ = true;
  EXPECT_EQ(then(Sleeps).stalled, true);
  running_ = false;
  EXPECT_EQ(then(Sleeps).stalled, false);
}

TEST_F(HangJudgeTest, WhatNobodyCouldLookAtIsNotSaidAnyMore) {
  EXPECT_EQ(judge_.on_blind_look().stalled, std::nullopt);
  EXPECT_EQ(then(Sleeps, 10).stalled, true);
  EXPECT_EQ(judge_.on_blind_look().stalled, false);
}

TEST_F(HangJudgeTest, NcclIsAskedAboutWhoIsBusyForNothing) {
  EXPECT_FALSE(then(IsBusy, 4).asks_nccl);
  EXPECT_TRUE(then(IsBusy).asks_nccl) << "after half of the time";
  EXPECT_FALSE(then(IsBusy, 4).asks_nccl) << "one question at a time";
}

TEST_F(HangJudgeTest, WhoSleepsOrGetsOnIsNotAskedAbout) {
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(then(MakesProgress).asks_nccl);
  for (int i = 0; i < 20; ++i)
    EXPECT_FALSE(then(Sleeps).asks_nccl);
}

TEST_F(HangJudgeTest, UntilNcclHasAnsweredNothingIsConcluded) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  EXPECT_FALSE(then(IsBusy, 6).doubt);
  const Verdict verdict = answer(std::nullopt);
  EXPECT_TRUE(verdict.doubt) << "it is not there";
  EXPECT_EQ(verdict.stalled, std::nullopt);
}

TEST_F(HangJudgeTest, ADoubtIsSaidOnce) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  EXPECT_FALSE(answer(std::nullopt).doubt) << "the time is not over";
  int doubts = 0;
  for (int i = 0; i < 30; ++i) {
    const Verdict verdict = then(IsBusy);
    doubts += verdict.doubt ? 1 : 0;
    EXPECT_EQ(verdict.stalled, std::nullopt);
    if (verdict.asks_nccl) doubts += answer(std::nullopt).doubt ? 1 : 0;
  }
  EXPECT_EQ(doubts, 1);
}

TEST_F(HangJudgeTest, ACollectiveThatIsStuckForTheWholeTimeIsAHang) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  EXPECT_EQ(answer(gap(7)).stalled, std::nullopt);
  EXPECT_EQ(judge_.collectives().text(), "NCCL: rank 3 has begun 1 AllReduce, the other 2");
  EXPECT_FALSE(then(IsBusy, 3).asks_nccl);
  EXPECT_TRUE(then(IsBusy).asks_nccl) << "a second time";
  EXPECT_EQ(then(IsBusy).stalled, std::nullopt);
  const Verdict verdict = answer(gap(7));
  EXPECT_EQ(verdict.stalled, true);
  EXPECT_FALSE(verdict.doubt);
  EXPECT_EQ(then(MakesProgress).stalled, false);
  EXPECT_EQ(judge_.collectives().text(), "") << "what was said is too old";
}

TEST_F(HangJudgeTest, ACollectiveThatIsStuckIsNoHangBeforeTheTime) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  (void)answer(gap(7));
  EXPECT_TRUE(then(IsBusy, 4).asks_nccl);
  EXPECT_EQ(answer(gap(7)).stalled, std::nullopt) << "nine tenths of it are over";
  EXPECT_EQ(then(IsBusy).stalled, true);
}

TEST_F(HangJudgeTest, CollectivesThatGoOnAreNoHang) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  (void)answer(gap(7));
  EXPECT_TRUE(then(IsBusy, 4).asks_nccl);
  (void)then(IsBusy);
  const Verdict verdict = answer(gap(8));
  EXPECT_EQ(verdict.stalled, std::nullopt);
  EXPECT_TRUE(verdict.doubt);
}

TEST_F(HangJudgeTest, WhoHasGotOnIsAskedAboutAtOnceWhenTheyAreBusyAgain) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  (void)then(MakesProgress);
  (void)then(IsBusy, 3);
  (void)answer(gap(7));  // it took its time
  EXPECT_FALSE(then(IsBusy).asks_nccl);
  EXPECT_TRUE(then(IsBusy).asks_nccl);
}

TEST_F(HangJudgeTest, AQuestionThatHangsIsNotAskedAgainSoon) {
  EXPECT_TRUE(then(IsBusy, 5).asks_nccl);
  (void)judge_.on_answer({false, std::nullopt}, running_, now_);
  const auto hung_at = now_;
  (void)then(MakesProgress);
  while (now_ + judge_.interval() < hung_at + minutes(5))
    EXPECT_FALSE(then(IsBusy).asks_nccl);
  EXPECT_TRUE(then(IsBusy).asks_nccl);
}

TEST_F(HangJudgeTest, TheAnswerMayTakeLongerTheLongerTheTimeIs) {
  EXPECT_EQ(HangJudge(seconds(1)).answer_limit(), seconds(1));
  EXPECT_EQ(HangJudge(seconds(10)).answer_limit(), seconds(5));
  EXPECT_EQ(HangJudge(seconds(600)).answer_limit(), seconds(10));
}

}  // namespace
}  // namespace drun::launcher
