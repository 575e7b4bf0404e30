#include "launcher/output/line_scheduler.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using Time = LineScheduler::Time;
using std::chrono::milliseconds;

constexpr LineState kWhole{};
constexpr LineState kOpen{.open = true};
constexpr LineState kBar{.open = true, .has_return = true};
constexpr LineState kLineStart{.open = true, .at_line_start = true, .has_return = true};
constexpr LineState kTooLong{.open = true, .too_long = true};

class LineSchedulerTest : public testing::Test {
 protected:
  LineSchedulerTest() {
    scheduler_.join(a_, 0);
    scheduler_.join(b_, 1);
  }
  // a_ has shown the beginning of a line.
  void show_beginning_of_a(LineState left = kOpen) {
    scheduler_.offer_partial(a_, left.has_return, false, now_);
    if (!left.has_return) pass(1000);
    EXPECT_EQ(next(), "a");
    scheduler_.written(a_, left, now_);
  }
  void pass(int ms) { now_ += milliseconds(ms); }
  // Who may write now: 'a', 'b', with '+' when a newline goes first, '-' for nobody.
  std::string next() {
    const auto turn = scheduler_.next(now_);
    if (!turn) return "-";
    std::string text(1, turn->slot == &a_ ? 'a' : 'b');
    if (turn->newline_first) text += '+';
    return text;
  }
  int due_in() {
    const auto deadline = scheduler_.deadline(now_);
    if (!deadline) return -1;
    return static_cast<int>(std::chrono::duration_cast<milliseconds>(*deadline - now_).count());
  }

  LineScheduler scheduler_;
  LineScheduler::Slot a_;
  LineScheduler::Slot b_;
  Time now_ = Time{} + std::chrono::hours(1);
};

TEST_F(LineSchedulerTest, WholeLinesGoInOrderOfArrival) {
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), -1);
  scheduler_.offer_lines(b_, false, now_);
  scheduler_.offer_lines(a_, false, now_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(due_in(), 0);
  EXPECT_EQ(next(), "b");
  scheduler_.written(b_, kWhole, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kWhole, now_);
  EXPECT_EQ(next(), "-");
}

TEST_F(LineSchedulerTest, AnUnfinishedLineOfSeveralRanksIsHeldAndKeepsNobody) {
  scheduler_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 1000);
  pass(900);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  scheduler_.written(b_, kWhole, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 100);
  pass(100);
  EXPECT_EQ(next(), "a");
}

// Four ranks write a text and its newline in two pieces, all at once: no line is cut, however the
// pieces come.
TEST_F(LineSchedulerTest, TextAndNewlineInTwoWritesAreOneLine) {
  scheduler_.offer_partial(a_, false, false, now_);
  scheduler_.offer_partial(b_, false, false, now_);
  EXPECT_EQ(next(), "-");
  pass(990);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  scheduler_.written(b_, kWhole, now_);
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kWhole, now_);
  EXPECT_EQ(due_in(), -1);
}

TEST_F(LineSchedulerTest, AnUnfinishedLineThatGrowsIsHeldFromItsBeginning) {
  for (int i = 0; i < 10; ++i) {
    scheduler_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "-");
    pass(100);
  }
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kOpen, now_);
  scheduler_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "a") << "what it has begun to show goes on at once";
}

TEST_F(LineSchedulerTest, ATerminalsPromptComesSoon) {
  LineScheduler::Delays delays;
  delays.hold = LineScheduler::kTerminalHold;
  scheduler_ = LineScheduler(delays);
  scheduler_.join(a_, 0);
  scheduler_.join(b_, 1);
  scheduler_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 100);
  pass(100);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineSchedulerTest, AProgressBarIsNotHeld) {
  scheduler_.offer_partial(a_, true, false, now_);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineSchedulerTest, TheStreamsOfOneRankHoldNothingAndGetNoNewline) {
  scheduler_.leave(b_);
  scheduler_.join(b_, 0);
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kOpen, now_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  pass(50);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineSchedulerTest, OneRankAndDrunItselfAreKeptApart) {
  scheduler_.leave(b_);
  scheduler_.join(b_, LineScheduler::kNobody);
  scheduler_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "a") << "nobody counts as another rank";
  scheduler_.written(a_, kOpen, now_);
  scheduler_.offer_lines(b_, false, now_);
  pass(50);
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineSchedulerTest, ARankWhoseStreamsHaveEndedDoesNotCount) {
  scheduler_.end(b_);
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.leave(b_);
  scheduler_.end(a_);
  scheduler_.leave(a_);
  scheduler_.join(a_, 0);
  scheduler_.join(b_, 1);
  scheduler_.offer_partial(a_, false, false, now_);
  EXPECT_EQ(next(), "-") << "ended and left counts once";
}

TEST_F(LineSchedulerTest, AnUnfinishedLineThatWasCompletedGoesWithTheRest) {
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  scheduler_.written(b_, kWhole, now_);
  scheduler_.offer_partial(a_, false, false, now_);
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kWhole, now_);
  pass(1000);
  EXPECT_EQ(next(), "-");
}

TEST_F(LineSchedulerTest, TheEndOfAFullBufferIsHeldBack) {
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 1000);
  pass(1000);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineSchedulerTest, ARankAloneNeverWaits) {
  scheduler_.leave(b_);
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kOpen, now_);
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineSchedulerTest, OthersWaitForTheEndOfALineThatIsBeingWritten) {
  show_beginning_of_a();
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a") << "its own line goes on before b, who came first";
  scheduler_.written(a_, kWhole, now_);
  EXPECT_FALSE(a_.was_cut);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineSchedulerTest, AQuietUnfinishedLineIsCutByANewline) {
  show_beginning_of_a();
  pass(20);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  EXPECT_EQ(due_in(), 30);
  pass(30);
  EXPECT_EQ(next(), "b+");
  scheduler_.written(b_, kWhole, now_);
  EXPECT_TRUE(a_.was_cut);
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kWhole, now_);
  EXPECT_FALSE(a_.was_cut);
}

TEST_F(LineSchedulerTest, AnUnfinishedLineThatGrowsForEverKeepsOthersOnlyForAWhile) {
  show_beginning_of_a();
  scheduler_.offer_lines(b_, false, now_);
  for (int waited = 0; waited < 200; waited += 20) {
    scheduler_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "a");
    scheduler_.written(a_, kOpen, now_);
    EXPECT_EQ(next(), "-");
    pass(20);
  }
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineSchedulerTest, AnEndedStreamsUnfinishedLineKeepsNobody) {
  show_beginning_of_a();
  scheduler_.end(a_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b+");
}

TEST_F(LineSchedulerTest, AStreamThatLeftItsLineUnfinishedKeepsNobody) {
  show_beginning_of_a();
  scheduler_.end(a_);
  scheduler_.leave(a_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b+");
  scheduler_.written(b_, kWhole, now_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineSchedulerTest, AProgressBarIsOverwrittenByAnotherBarWithoutANewline) {
  show_beginning_of_a(kBar);
  scheduler_.offer_partial(b_, true, false, now_);
  EXPECT_EQ(next(), "b");
  scheduler_.written(b_, kBar, now_);
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a+") << "a line does not wait for a bar";
}

TEST_F(LineSchedulerTest, ALineThatEndsWithAReturnKeepsNobodyAndNeedsNoNewline) {
  show_beginning_of_a(kLineStart);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "b");
  EXPECT_TRUE(a_.was_cut);
}

TEST_F(LineSchedulerTest, NothingIsPutIntoWhatIsNotText) {
  scheduler_.offer_lines(a_, false, now_);
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kTooLong, now_);
  scheduler_.offer_lines(b_, false, now_);
  EXPECT_EQ(next(), "-");
  pass(50);
  EXPECT_EQ(next(), "b");
}

TEST_F(LineSchedulerTest, AfterTheEndNothingIsHeldBack) {
  scheduler_.offer_partial(a_, false, true, now_);
  scheduler_.end(a_);
  scheduler_.offer_partial(a_, false, true, now_);
  EXPECT_EQ(next(), "a");
}

TEST_F(LineSchedulerTest, WhoHasWaitedLongestCutsInThoughAnotherHasWholeLines) {
  LineScheduler::Slot c;
  scheduler_.join(c, 2);
  scheduler_.offer_partial(b_, false, false, now_);
  pass(10);
  scheduler_.offer_partial(a_, true, false, now_);  // at once
  EXPECT_EQ(next(), "a");
  scheduler_.written(a_, kOpen, now_);
  for (int waited = 10; waited < 1200; waited += 10) {  // a goes on all the time
    scheduler_.offer_partial(a_, false, false, now_);
    EXPECT_EQ(next(), "a");
    scheduler_.written(a_, kOpen, now_);
    if (waited == 1100) scheduler_.offer_lines(c, false, now_);
    EXPECT_EQ(next(), "-");
    pass(10);
  }
  EXPECT_EQ(due_in(), 0);
  EXPECT_EQ(next(), "b+");
  scheduler_.leave(c);
}

// Four ranks write at random moments: the beginning of a line, more of it, its end.
class RandomWritersTest : public testing::TestWithParam<unsigned> {
 protected:
  struct Writer {
    LineScheduler::Slot slot;
    bool in_line = false;  // has written the beginning of a line
    bool ended = false;    // and its end, which waits
    bool shown = false;    // the beginning has been shown
    Time began{};
    Time offered{};
  };

  RandomWritersTest() {
    for (int rank = 0; rank < 4; ++rank)
      scheduler_.join(writers_[static_cast<std::size_t>(rank)].slot, rank);
  }
  unsigned random(unsigned limit) { return static_cast<unsigned>(random_()) % limit; }

  void begin_line(Writer& writer) {
    writer.in_line = true;
    writer.ended = writer.shown = false;
    writer.began = now_;
    scheduler_.offer_partial(writer.slot, false, false, now_);
  }
  void end_line(Writer& writer) {
    writer.ended = true;
    writer.offered = now_;
    scheduler_.offer_lines(writer.slot, false, now_);
  }
  // Everything that may be written now; returns how many lines were cut.
  int write_all() {
    int cuts = 0;
    while (const auto turn = scheduler_.next(now_)) {
      ++written_;
      cuts += turn->newline_first ? 1 : 0;
      for (Writer& writer : writers_) {
        if (&writer.slot != turn->slot) continue;
        longest_wait_ = std::max(longest_wait_, now_ - (writer.ended ? writer.offered : now_));
        writer.shown = !writer.ended;
        if (writer.ended) writer.in_line = false;
        scheduler_.written(writer.slot, writer.shown ? kOpen : kWhole, now_);
      }
    }
    return cuts;
  }
  // To `time`, with a stop wherever something is due.
  int pass_until(Time time) {
    int cuts = 0;
    for (auto due = scheduler_.deadline(now_); due && *due <= time;
         due = scheduler_.deadline(now_)) {
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
  LineScheduler scheduler_;
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
      scheduler_.offer_partial(writer.slot, false, false, now_);  // more of it
  }
  for (Writer& writer : writers_)
    if (writer.in_line && !writer.ended) end_line(writer);
  pass_until(now_ + milliseconds(1'000));
  EXPECT_EQ(scheduler_.deadline(now_), std::nullopt) << "all is written in the end";
  EXPECT_LE(longest_wait_, milliseconds(200 * 3)) << "three others, each with its patience";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWritersTest, testing::Range(0U, 20U));

}  // namespace
}  // namespace drun::launcher
