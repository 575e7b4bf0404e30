#include "launcher/output/output_turns.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>

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

TEST_F(LineTurnsTest, WhoHasWaitedLongestCutsInThoughAnotherHasWholeLines) {
  LineTurns::Seat c;
  turns_.join(c, 2);
  turns_.offer_partial(b_, false, false, now_);
  pass(10);
  turns_.offer_partial(a_, true, false, now_);  // at once
  EXPECT_EQ(next(), "a");
  turns_.written(a_, kOpen, now_);
  for (int waited = 10; waited < 1200; waited += 10) {  // a goes on all the time
    turns_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "a");
    turns_.written(a_, kOpen, now_);
    if (waited == 1100) turns_.offer_lines(c, false, now_);
    EXPECT_EQ(next(), "-");
    pass(10);
  }
  EXPECT_EQ(due_in(), 0);
  EXPECT_EQ(next(), "b+");
  turns_.leave(c);
}

// Four ranks write at random moments: the beginning of a line, more of it, its end.
class RandomWritersTest : public testing::TestWithParam<unsigned> {
 protected:
  struct Writer {
    LineTurns::Seat seat;
    bool in_line = false;  // has written the beginning of a line
    bool ended = false;    // and its end, which waits
    bool shown = false;    // the beginning has been shown
    Time began{};
    Time offered{};
  };

  RandomWritersTest() {
    for (int rank = 0; rank < 4; ++rank)
      turns_.join(writers_[static_cast<std::size_t>(rank)].seat, rank);
  }
  unsigned random(unsigned limit) { return static_cast<unsigned>(random_()) % limit; }

  void begin_line(Writer& writer) {
    writer.in_line = true;
    writer.ended = writer.shown = false;
    writer.began = now_;
    turns_.offer_partial(writer.seat, false, false, now_);
  }
  void end_line(Writer& writer) {
    writer.ended = true;
    writer.offered = now_;
    turns_.offer_lines(writer.seat, false, now_);
  }
  // Everything that may be written now; returns how many lines were cut.
  int write_all() {
    int cuts = 0;
    while (const auto grant = turns_.next(now_)) {
      ++written_;
      cuts += grant->newline_first ? 1 : 0;
      for (Writer& writer : writers_) {
        if (&writer.seat != grant->seat) continue;
        longest_wait_ = std::max(longest_wait_, now_ - (writer.ended ? writer.offered : now_));
        writer.shown = !writer.ended;
        if (writer.ended) writer.in_line = false;
        turns_.written(writer.seat, writer.shown ? kOpen : kWhole, now_);
      }
    }
    return cuts;
  }
  // To `time`, with a stop wherever something is due.
  int pass_until(Time time) {
    int cuts = 0;
    for (auto due = turns_.deadline(now_); due && *due <= time; due = turns_.deadline(now_)) {
      now_ = *due;
      const std::size_t before = written_;
      cuts += write_all();
      if (written_ == before) {
        ADD_FAILURE() << "nothing was due: the console's thread would spin";
        break;
      }
    }
    now_ = time;
    return cuts + write_all();
  }

  std::mt19937 random_{GetParam()};
  LineTurns turns_;
  std::array<Writer, 4> writers_;
  Time now_ = Time{} + std::chrono::hours(1);
  Time::duration longest_wait_{};
  std::size_t written_ = 0;
};

TEST_P(RandomWritersTest, CutNoLineThatIsCompleteWithinTheHold) {
  for (int step = 0; step < 500; ++step) {
    ASSERT_EQ(pass_until(now_ + milliseconds(random(90))), 0);
    for (Writer& writer : writers_) {
      ASSERT_FALSE(writer.shown) << "an unfinished line was shown early";
      if (writer.in_line && now_ - writer.began > milliseconds(900)) end_line(writer);
    }
    Writer& writer = writers_[random(4)];
    if (!writer.in_line)
      begin_line(writer);
    else
      end_line(writer);
  }
  EXPECT_EQ(longest_wait_, Time::duration::zero()) << "nobody waited for another's unfinished line";
}

TEST_P(RandomWritersTest, KeepNobodyWaitingWithLinesThatNeverEnd) {
  for (int step = 0; step < 500; ++step) {
    pass_until(now_ + milliseconds(random(400)));
    Writer& writer = writers_[random(4)];
    if (!writer.in_line)
      begin_line(writer);
    else if (random(3) == 0)
      end_line(writer);
    else if (random(2) == 0)
      turns_.offer_partial(writer.seat, false, false, now_);  // more of it
  }
  for (Writer& writer : writers_)
    if (writer.in_line && !writer.ended) end_line(writer);
  pass_until(now_ + milliseconds(1'000));
  EXPECT_EQ(turns_.deadline(now_), std::nullopt) << "all is written in the end";
  EXPECT_LE(longest_wait_, milliseconds(200 * 3)) << "three others, each with its patience";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWritersTest, testing::Range(0U, 20U));

}  // namespace
}  // namespace drun::launcher
