#include "launcher/output_turns.hpp"

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using Time = LineTurns::Time;
using std::chrono::milliseconds;

constexpr LineTurns::Left kWhole{};
constexpr LineTurns::Left kOpen{.open = true};
constexpr LineTurns::Left kBar{.open = true, .returned = true};
constexpr LineTurns::Left kMargin{.open = true, .at_margin = true, .returned = true};
constexpr LineTurns::Left kEndless{.open = true, .endless = true};

class LineTurnsTest : public testing::Test {
 protected:
  LineTurnsTest() {
    turns_.join(a_, 0);
    turns_.join(b_, 1);
  }
  // a_ has shown the beginning of a line.
  void show_beginning_of_a(LineTurns::Left left = kOpen) {
    turns_.offer_partial(a_, left.returned, false, now_);
    if (!left.returned) pass(1000);
    EXPECT_EQ(next(), "a");
    turns_.written(a_, left, now_);
  }
  void pass(int ms) { now_ += milliseconds(ms); }
  // Who may write now: 'a', 'b', with '+' when a newline goes first, '-' for nobody.
  std::string next() {
    const auto grant = turns_.next(now_);
    if (!grant) return "-";
    std::string text(1, grant->seat == &a_ ? 'a' : 'b');
    if (grant->newline_first) text += '+';
    return text;
  }
  int due_in() {
    const auto deadline = turns_.deadline(now_);
    if (!deadline) return -1;
    return static_cast<int>(std::chrono::duration_cast<milliseconds>(*deadline - now_).count());
  }

  LineTurns turns_;
  LineTurns::Seat a_;
  LineTurns::Seat b_;
  Time now_ = Time{} + std::chrono::hours(1);
};

TEST_F(LineTurnsTest, WholeLinesGoInOrderOfArrival) {
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), -1);
  turns_.offer_lines(b_, false, now_);
  turns_.offer_lines(a_, false, now_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(due_in(), 0);
  EXPECT_EQ(next(), "b");
  turns_.written(b_, kWhole, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kWhole, now_);
  EXPECT_EQ(next(), "-");
}

TEST_F(LineTurnsTest, AnUnfinishedLineOfSeveralRanksIsHeldAndKeepsNobody) {
  turns_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 1000);
  pass(900);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  turns_.written(b_, kWhole, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 100);
  pass(100);
  EXPECT_EQ(next(), "a");
}

// Four ranks write a text and its newline in two pieces, all at once: no line is cut, however the
// pieces come.
TEST_F(LineTurnsTest, TextAndNewlineInTwoWritesAreOneLine) {
  turns_.offer_partial(a_, false, false, now_);
  turns_.offer_partial(b_, false, false, now_);
  EXPECT_EQ(next(), "-");
  pass(990);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  turns_.written(b_, kWhole, now_);
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kWhole, now_);
  EXPECT_EQ(due_in(), -1);
}

TEST_F(LineTurnsTest, AnUnfinishedLineThatGrowsIsHeldFromItsBeginning) {
  for (int i = 0; i < 10; ++i) {
    turns_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "-");
    pass(100);
  }
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kOpen, now_);
  turns_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "a") << "what it has begun to show goes on at once";
}

TEST_F(LineTurnsTest, ATerminalsPromptComesSoon) {
  LineTurns::Settings settings;
  settings.hold = LineTurns::kTerminalHold;
  turns_ = LineTurns(settings);
  turns_.join(a_, 0);
  turns_.join(b_, 1);
  turns_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 100);
  pass(100);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineTurnsTest, AProgressBarIsNotHeld) {
  turns_.offer_partial(a_, true, false, now_);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineTurnsTest, TheStreamsOfOneRankHoldNothingAndGetNoNewline) {
  turns_.leave(b_);
  turns_.join(b_, 0);
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kOpen, now_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  pass(50);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineTurnsTest, OneRankAndDrunItselfAreKeptApart) {
  turns_.leave(b_);
  turns_.join(b_, LineTurns::kNobody);
  turns_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "a") << "nobody counts as another rank";
  turns_.written(a_, kOpen, now_);
  turns_.offer_lines(b_, false, now_);
  pass(50);
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineTurnsTest, ARankWhoseStreamsHaveEndedDoesNotCount) {
  turns_.end(b_);
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  turns_.leave(b_);
  turns_.end(a_);
  turns_.leave(a_);
  turns_.join(a_, 0);
  turns_.join(b_, 1);
  turns_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-") << "ended and left counts once";
}

TEST_F(LineTurnsTest, AnUnfinishedLineThatWasCompletedGoesWithTheRest) {
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  turns_.written(b_, kWhole, now_);
  turns_.offer_partial(a_, false, false, now_);
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kWhole, now_);
  pass(1000);
  EXPECT_EQ(next(), "-");
}

TEST_F(LineTurnsTest, TheEndOfAFullBufferIsHeldBack) {
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 1000);
  pass(1000);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineTurnsTest, ARankAloneNeverWaits) {
  turns_.leave(b_);
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kOpen, now_);
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineTurnsTest, OthersWaitForTheEndOfALineThatIsBeingWritten) {
  show_beginning_of_a();
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a") << "its own line goes on before b, who came first";
  turns_.written(a_, kWhole, now_);
  EXPECT_FALSE(a_.cut);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineTurnsTest, AQuietUnfinishedLineIsCutByANewline) {
  show_beginning_of_a();
  pass(20);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 30);
  pass(30);
  EXPECT_EQ(next(), "b+");
  turns_.written(b_, kWhole, now_);
  EXPECT_TRUE(a_.cut);
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kWhole, now_);
  EXPECT_FALSE(a_.cut);
}

TEST_F(LineTurnsTest, AnUnfinishedLineThatGrowsForEverKeepsOthersOnlyForAWhile) {
  show_beginning_of_a();
  turns_.offer_lines(b_, false, now_);
  for (int waited = 0; waited < 200; waited += 20) {
    turns_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "a");
    turns_.written(a_, kOpen, now_);
    EXPECT_EQ(next(), "-");
    pass(20);
  }
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineTurnsTest, AnEndedStreamsUnfinishedLineKeepsNobody) {
  show_beginning_of_a();
  turns_.end(a_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineTurnsTest, AStreamThatLeftItsLineUnfinishedKeepsNobody) {
  show_beginning_of_a();
  turns_.end(a_);
  turns_.leave(a_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b+");
  turns_.written(b_, kWhole, now_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineTurnsTest, AProgressBarIsOverwrittenByAnotherBarWithoutANewline) {
  show_beginning_of_a(kBar);
  turns_.offer_partial(b_, true, false, now_);
  EXPECT_EQ(next(), "b");
  turns_.written(b_, kBar, now_);
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a+") << "a line does not wait for a bar";
}

TEST_F(LineTurnsTest, ALineThatEndsWithAReturnKeepsNobodyAndNeedsNoNewline) {
  show_beginning_of_a(kMargin);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  EXPECT_TRUE(a_.cut);
}

TEST_F(LineTurnsTest, NothingIsPutIntoWhatIsNotText) {
  turns_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kEndless, now_);
  turns_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  pass(50);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineTurnsTest, AfterTheEndNothingIsHeldBack) {
  turns_.offer_partial(a_, false, true, now_);
  turns_.end(a_);
  turns_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
}

}  // namespace
}  // namespace drun::launcher
